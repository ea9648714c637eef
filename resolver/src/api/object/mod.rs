//! The object API (fleet contract §2.4): the objects of a directory on this host, for other hosts and programs, over HTTP/1.1
//! on loopback, or over TLS. One request a connection.
//!
//! A request is read (`request`), named and permitted (`routes`, `access`, and `boundary` where a vault keeps the tokens), and
//! done on the directory (`objects`). Bodies are
//! streamed both ways. Heads are read here, since the contract fixes what a framing error is answered with: nothing.
mod access;
mod answer;
mod boundary;
mod config;
mod list;
mod name;
mod objects;
mod put;
mod range;
mod request;
mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod upload;

pub use access::{Access, Action, Namespace, Prefix, Token};
pub use boundary::{Asking, Limits, Verifier, Verifying};
pub use config::Config;
pub use objects::Objects;
pub use serve::{Closed, ObjectServer, Served};
