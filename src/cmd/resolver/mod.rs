//! `stado resolver …`: the daemon of this host, and what it knows.
mod life;
mod probe;
mod resolve;
mod snapshot;
mod status;
mod text;
mod verdict;

pub(crate) use life::{restart, stop};
pub(crate) use resolve::resolve;
pub(crate) use snapshot::snapshot;
pub(crate) use status::status;
