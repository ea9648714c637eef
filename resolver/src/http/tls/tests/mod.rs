//! Real handshakes over real sockets.
mod authority;
mod choosing;
mod hello;
mod reload;
pub(in crate::http) mod support;
