//! Containers become registrations (`mesh.md`, "The Docker adapter"; mesh contract §5; proxy rules 22–25), and nothing else.
//!
//! Read in this order. Where the engine is: [`locate`], [`endpoint`], `transport`, `client`, behind the trait in [`engine`].
//! What a container comes to, all pure: [`container`] (facts), [`labels`] with [`host_template`], [`claims`], [`refusal`],
//! [`plan`]. What runs: `line` keeps the connection, `book` knows the containers, `shelf` leads the mesh to the plan, and
//! [`watcher`] is the one task that holds them. [`probe`] measures what this machine's engine can do, for `doctor`.
mod backoff;
mod book;
pub mod claims;
mod client;
mod config;
pub mod container;
mod convert;
pub mod endpoint;
pub mod engine;
pub mod host_template;
pub mod labels;
mod line;
pub mod locate;
pub mod plan;
pub mod probe;
pub mod reach;
pub mod refusal;
mod report;
mod shelf;
mod status;
mod transport;
pub mod watcher;

pub use client::RealEngines;
pub use config::{Config, Timing};
pub use locate::{Lookup, usual_sockets};
pub use status::warnings;
pub use watcher::{Containers, Docker};

#[cfg(test)]
mod tests;
