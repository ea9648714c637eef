//! Snapshot → plan (pure) → markers + adapters → state.
//!
//! [`refresh`] is the loop that reads snapshots (one read: `read`; when: [`schedule`]; what a start does without an authority:
//! `recover`; what was given and not taken: `given`).
//! [`walk`] takes one snapshot into force: [`markers`], the API ([`api_slot`]), then the adapters: [`want`] says what
//! each should be ([`store_address`]), [`plan`] which steps lead there, [`actuate`] takes them ([`ports`]). [`held`] is what the rest of the daemon sees; [`report`] and
//! [`state`] are what people see. [`succession`] keeps a standby ready, and an authority from staying one when it was replaced.
pub mod actuate;
pub mod api_slot;
pub mod follow;
mod given;
pub mod held;
pub mod markers;
pub mod pins;
pub mod plan;
pub mod ports;
pub mod read;
mod recover;
pub mod refresh;
pub mod report;
pub mod schedule;
pub mod state;
pub mod store_address;
pub mod succession;
pub mod walk;
pub mod want;
