//! A host joins the fleet: an invitation made on the authority, a candidate that shows it once, and what both keep.
//!
//! ```text
//! AUTHORITY  invite ─► book ······················ admit ─► book ─► registry ─► welcome
//! HOST                 invitation ─► keys ─► pins ─► ask ───┘   └─► config ─► copy ─► resolver
//! ```
//! Every step may be cut anywhere and be done again (docs/decisions/joining.md).
mod account;
mod admit;
mod book;
mod invitation;
mod joiner;
mod keys;
mod leave;
mod own;
mod pins;
mod shelf;
mod wire;

pub use account::Account;
pub use admit::{Presented, admit, allowed};
pub use book::{Book, Fate, Record, Refused, Use, Verdict};
pub use invitation::{BadInvitation, Invitation};
pub use joiner::{Asked, Joined, Joiner, Observer, Step};
pub use keys::{fingerprint, public_key, read_or_make};
pub use leave::{forget, strike};
pub use own::{Door, OwnConfig, Pending};
pub use pins::{keep, known_hosts};
pub use shelf::Shelf;
pub use wire::{Candidate, Welcome};

#[cfg(test)]
mod tests;
