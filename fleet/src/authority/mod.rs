//! Fetch a snapshot, commit a swap; serve both (fleet contract §3). The one place where the registry is read and written.
//!
//! Reading: [`locate`] → [`fetch`] → `admit` elsewhere. Writing: [`push`] → [`commit`] → the same read again.
mod again;
mod bulletin;
mod change;
mod changes;
mod commit;
mod confirm;
mod envelope;
mod error;
mod exec;
mod fetch;
mod first;
mod history;
mod holding;
mod locate;
mod mirror;
mod newer;
mod promote;
mod push;
mod read;
mod receipt;
mod refusals;
mod remote;
mod routes;
mod serve;
mod successor;
mod watch;
mod write;

pub use again::again_while_moved;
pub use bulletin::Bulletin;
pub use change::Change;
pub use changes::Changes;
pub use commit::{Committed, commit};
pub use confirm::commit_edit;
pub use error::{RegistryError, Rejected};
pub use exec::Exec;
pub use fetch::{fetch, fetch_raw, fetch_since, record};
pub use first::first_copy;
pub use history::{HistoryReport, content, content_line, history};
pub use holding::{Heard, Holders, HoldersReport, Holding, holders};
pub use locate::{RemoteAuthority, SharedStore, Source, Standby, locate, next_source, standbys};
pub use mirror::mirror;
pub use promote::{PromoteRequest, Promoted, promote, tell_before};
pub use push::{PushRefused, PushRequest, push};
pub use read::{Answer, Here, Origin, Reading, here, read_for_verbs};
pub use receipt::{PullReceipt, PushReceipt};
pub use refusals::{RefusalRecord, Refusals};
pub use routes::PublishedRoutes;
pub use serve::snapshot_line;
pub use successor::{Successor, follow_successor, own_succession, settled, successor};
pub use watch::{Teller, Told, Watch, WatchEnded, tell};
pub use write::fetch_for_write;

#[cfg(test)]
mod tests;
