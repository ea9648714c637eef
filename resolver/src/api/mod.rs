//! `control`: the mesh API on the Unix socket. `resolution`: the resolution API on loopback. `metrics`: the numbers of both.
//! `object`: the objects of this host's store.
pub mod control;
pub mod metrics;
pub mod object;
pub mod resolution;
