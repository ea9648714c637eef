//! Connect by name: one stable local address per service, wherever it runs. See [`client`].
pub mod client;

/// The code on the pages for people, compiled as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/client-library.md")]
    mod client_library {}
    #[doc = include_str!("../README.md")]
    mod readme {}
}

/// The command line: what the three binaries share. Not an interface for other programs.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod args;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cmd;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod config;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod exit;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod ui;
