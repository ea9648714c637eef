//! Moving the services of a placement profile to another host, as one transaction (fleet contract §6.11).
//!
//! Everything here decides or writes text; nothing here touches a host. [`drive`] leads a [`World`] through the steps,
//! back when one fails, and to an end when an earlier attempt was cut off. What a step says to a host is made by
//! [`units`] (services) and [`state`] (files) as shell text, since a destination needs nothing but an account and a shell.
pub mod drive;
mod error;
mod explain;
mod journal;
pub mod probe;
mod profile;
pub mod shell;
pub mod state;
#[cfg(test)]
mod tests;
mod unit;
pub mod unit_file;
pub mod units;

pub use drive::{Action, Doing, Ended, Wish, World};
pub use error::PlacementError;
pub use explain::explain;
pub use journal::{Entry, Journal, Step};
pub use profile::{Destination, NoProfile, Probe, Profile, Routing, StatePath, active_host};
pub use unit::{Commands, Manager, Run, Unit};

/// The claim of a new transaction.
pub fn new_claim(profile: &str, from_host: &str, to_host: &str) -> crate::edit::Claim {
    crate::edit::Claim {
        id: uuid::Uuid::new_v4().to_string(),
        profile: profile.to_owned(),
        from_host: from_host.to_owned(),
        to_host: to_host.to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
    }
}
