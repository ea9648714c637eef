//! `stado resolver …`: the daemon of this host, and what it knows.
mod probe;
mod resolve;
mod snapshot;
mod status;
mod text;
mod verdict;

pub(crate) use resolve::resolve;
pub(crate) use snapshot::snapshot;
pub(crate) use status::status;
