//! Whole daemons in this process: real sockets, real local stores, homes in temporary folders. Mostly the authority is this
//! host, so that no SSH is needed; `two_hosts` goes through the gate.
mod adapters;
mod api;
mod bridge;
mod ends;
mod gate;
mod hand_over;
mod joining;
mod objects;
mod refresh;
mod router;
mod start;
mod support;
mod two_hosts;
