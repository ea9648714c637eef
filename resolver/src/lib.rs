//! The Stado daemon as a library: serves connections and applies changes on this host.
//! It knows no command line, prints nothing and reads no environment.

pub mod api;
pub mod apply;
pub mod bridge;
pub mod conn;
pub mod daemon;
pub mod docker;
#[doc(hidden)]
pub mod fuzz;
pub mod gate;
pub mod http;
pub mod mesh;
pub mod publish;
