//! The stream multiplex: many relayed streams inside one exec channel, each with credit of its own (`ssh-relay.md` §2).
//!
//! [`near`] runs on the host of the client, [`far`] on the host of the service: in `stado resolver relay`, started over SSH,
//! or inside the gate. Both speak HTTP/2 with one CONNECT per stream, after a preamble that settles the version.
mod copy;
mod facts;
mod far;
mod gather;
mod grant;
mod near;
mod pace;
mod preamble;
mod refusal;
mod rtt;
mod stream;

pub use far::{Admit, Admitting, Explaining, serve};
pub use gather::Packets;
pub use grant::{Grant, withdrawn};
pub use refusal::{Code, Refusal};

pub use super::distance::channel_window;

pub(super) use near::{Multiplex, OpenError};
pub(super) use preamble::NoMultiplex;

/// Credit of one stream at first; more is given where the round trip is long.
const STREAM_WINDOW: u32 = 1 << 20;
/// The connection's own credit never binds: else streams that nobody reads would use it up and stop the others. What may
/// arrive is bounded by streams × their credit.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// With its header of 9 bytes a frame fills one SSH packet.
const FRAME: u32 = 32_768 - 9;
/// Streams of one multiplex at a time; what may arrive is at most so many times their credit.
const STREAMS: u32 = 16_384;
/// Of these, streams to one endpoint: a service that never answers must leave room for the others of its host.
const TO_ONE: usize = 12_288;
/// Bytes of one stream that wait to be sent.
const SEND_BUFFER: usize = 1 << 20;
/// Clients that leave in a crowd must not end the others: h2 takes many resets at once for an attack.
const RESETS: usize = 1 << 16;
