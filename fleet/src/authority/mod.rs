//! Fetch a snapshot, commit a swap; serve both (fleet contract §3). The one place where the registry is read and written.
//!
//! Reading: [`locate`] → [`fetch`] → `admit` elsewhere. Writing: [`push`] → [`commit`] → the same read again.
mod commit;
mod confirm;
mod envelope;
mod error;
mod exec;
mod fetch;
mod first;
mod locate;
mod push;
mod read;
mod receipt;
mod refusals;
mod remote;
mod serve;

pub use commit::{Committed, commit};
pub use error::RegistryError;
pub use exec::Exec;
pub use fetch::{fetch, fetch_raw, fetch_since, record};
pub use first::first_copy;
pub use locate::{RemoteAuthority, Source, locate, next_source};
pub use push::{PushRefused, PushRequest, push};
pub use read::{Answer, Here, Origin, Reading, here, read_for_verbs};
pub use receipt::{PullReceipt, PushReceipt};
pub use refusals::{RefusalRecord, Refusals};
pub use serve::snapshot_line;

#[cfg(test)]
mod tests;
