//! Client library of the local mesh: publish what your program listens on under a name, or look names up.
//!
//! A program binds a port of its own, registers it and keeps the registration alive; the daemon answers with the
//! stable address that others use. Daemon restarts, lost answers and expired leases are survived without the address
//! changing; what happens meanwhile is readable from the handle (see [`State`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), stado::client::Error> {
//! // Bind first, then publish what was bound.
//! let listener = stado::client::listen_tcp("checkout.api", Some(18080)).await?;
//! println!("others reach this program at {}", listener.registration().endpoint());
//! let (stream, peer) = listener.accept().await?;
//! # drop((stream, peer));
//! listener.close().await;
//! # Ok(()) }
//! ```
//!
//! Looking up and listing goes through [`Api`]; programs without an async runtime use [`blocking`].
//!
//! Built with `default-features = false` this crate is only this library and depends on no SSH, HTTP server, container
//! or command-line code.

mod api;
mod backoff;
pub mod blocking;
mod error;
mod handle;
mod http;
mod keeper;
mod listener;
mod manage;
mod options;
#[cfg(test)]
mod tests;

pub use api::{Api, default_socket};
pub use error::Error;
pub use handle::{Handle, RegistrationInfo, State, register};
pub use listener::{Listener, listen, listen_tcp};
pub use options::{FirstAttempt, Kind, RegistrationOptions};
/// Shapes of the local API's answers.
pub use stado_fleet::wire;
