//! The proxy rules over real sockets.
mod connections;
mod descriptors;
mod fleet;
mod frontends;
mod loops;
mod streams;
pub(super) mod support;
