//! `control`: the mesh API on the Unix socket. `resolution`: the resolution API on loopback.
pub mod control;
pub mod resolution;
