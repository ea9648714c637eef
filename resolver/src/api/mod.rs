//! `control`: the mesh API on the Unix socket. `resolution`: the resolution API on loopback. `metrics`: the numbers of both.
pub mod control;
pub mod metrics;
pub mod resolution;
