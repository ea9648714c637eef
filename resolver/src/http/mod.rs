//! The router: HTTP and HTTPS services of this host by hostname (`mesh.md`, "The shared HTTP proxy and TLS"; proxy rules 10
//! to 21).
//!
//! `listen` accepts, `serve1` leads one connection through its requests, `head` and `framing` read and write them, `upstream`
//! and [`Pool`] reach backends, `plain` answers who speaks no TLS on its port. [`Routes`] is what a request is looked up in: one immutable [`Table`] of [`Site`]s, fed by
//! `sites` from the mesh and the fleet. [`Index`] is the page of our own host, [`page`] makes the answers that are our own,
//! [`Observer`] counts and logs what was answered.

mod access;
mod access_log;
mod buffer;
mod config;
mod context;
mod door;
mod far;
mod fleet;
mod framing;
pub(crate) mod fuzz;
mod h2;
mod head;
pub mod hostname;
mod index;
mod inherited;
mod listen;
mod listening;
mod own;
pub mod page;
mod plain;
mod pool;
mod router;
mod serve1;
mod site;
mod sites;
mod socket;
mod stats;
mod table;
#[cfg(test)]
mod tests;
pub mod tls;
mod upstream;

pub use access::{Done, Observer};
pub use config::{AccessFormat, AccessLog, HttpConfig, Limits, Rotate};
pub use context::HttpContext;
pub use fleet::follow;
pub use index::{FleetView, Index, Source};
pub use inherited::Inherited;
pub use listening::{CoversHost, Listening, TellCertificates};
pub use own::{Own, OwnAnswer, OwnBody, OwnRequest, OwnResponse};
pub use page::{Page, Problem, render};
pub use pool::Pool;
pub use router::{Listener, Router};
pub use serve1::{Scheme, serve};
pub use site::{Protocol, Site};
pub(crate) use sites::Facts;
pub use sites::{Shaded, Sites};
pub use socket::{Client, Io, Socket};
pub use stats::{BOUNDS_US, CLASSES, Counted, InFlight, LastError, SiteStats};
pub use table::{Routes, Table};
