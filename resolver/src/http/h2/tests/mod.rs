//! Real clients and backends over real sockets.
mod ends;
mod illegal;
mod limits;
mod support;
mod to_h1;
mod to_h2;
mod websocket;
