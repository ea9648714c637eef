//! Hand-over: a daemon of the same home goes on with everything that the running one holds, without a refused connection or
//! a cut stream (`docs/hand-over.md`).
//!
//! ```text
//! comes                                   serves
//!   POST /v1/hand-over, version  ───────►   another version, another user: refused
//!   TakeOver(who, which home)    ───────►   another home: refused. Changes wait from here on
//!                                ◄───────   Parcel, batches of descriptors, All
//!   builds everything, serves nobody
//!   Ready                        ───────►   publishes no more
//!                                ◄───────   Go
//!   accepts, publishes
//!   Running                      ───────►   accepts no more; lives until its last stream ends
//! ```
//! Until `Running` the one that serves keeps every descriptor and goes on if the other one is lost, at whatever step.
//!
//! [`wire`] carries messages and descriptors, [`parcel`] says what they are; [`reception`] and [`give`] are the side that serves ([`offers`]),
//! [`take`], [`unpack`] and [`build`] the one that comes. [`remain`] is the rest of a life after it was taken over, in which it still follows the directory ([`obey`]), [`behind`] what its successor
//! knows of it.
pub(super) mod behind;
pub(super) mod build;
pub(super) mod error;
pub(super) mod give;
pub(super) mod obey;
pub(super) mod offers;
pub(super) mod parcel;
pub(super) mod reception;
pub(super) mod remain;
pub(super) mod take;
pub(super) mod unpack;
pub(super) mod wire;

pub use error::TakeError;

use std::time::Duration;

/// For a step that only moves bytes.
const STEP: Duration = Duration::from_secs(20);
/// For building, or beginning to serve, thousands of services on a slow machine.
const WORK: Duration = Duration::from_secs(60);
