//! Services of a host's mesh in the directory: published, used, moved and taken back (docs/decisions/bridge.md). Pure.
//!
//! A published service is an ordinary entry of the directory: its `managed_service` is a unit of kind `mesh` that its host
//! declares, and its endpoint is that host's stable frontend. Every reader of the registry can serve it.
mod entry;
mod moved;
mod publish;
mod rest;
#[cfg(test)]
mod tests;
mod uses;
mod withdraw;

pub use moved::{Moved, move_published};
pub use publish::{NewPublication, Published, Role, publish};
pub use rest::{Resting, publications};
pub use uses::{NewUse, Unused, Used, UsedAll, leave_all, unuse, use_all, use_service};
pub use withdraw::{Unpublished, unpublish};
