//! The router over real sockets, with the bytes of both ends in sight. Each test is named after what it promises.
mod bodies;
mod connections;
mod heads;
mod http2;
mod lives;
mod moved;
mod pages;
mod support;
mod tls;
mod to_h2;
mod upgrades;
