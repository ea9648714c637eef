//! `control`: the mesh API on the Unix socket. `resolution`: the resolution API on loopback. `metrics`: the numbers of both.
//! `object`: the objects of this host's store. `vault`: the secrets of this host's vault. The last two are for other hosts
//! too, and share `listening`.
pub mod control;
mod listening;
pub mod metrics;
pub mod object;
pub mod resolution;
pub mod vault;

pub use listening::Security;
