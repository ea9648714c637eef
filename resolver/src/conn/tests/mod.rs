//! The proxy rules over real sockets.
mod connections;
#[cfg(target_os = "linux")]
mod descriptors;
mod fleet;
mod frontends;
mod loops;
mod streams;
pub(super) mod support;
