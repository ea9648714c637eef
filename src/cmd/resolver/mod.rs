//! `stado resolver …`: the daemon of this host, and what it knows.
mod api_reassign;
mod life;
mod placed;
mod probe;
mod relay;
mod resolve;
mod snapshot;
mod status;
mod stdio;
mod text;
mod unit;
mod verdict;
mod watch;

pub(crate) use api_reassign::api_reassign;
pub(crate) use life::{restart, stop};
pub(crate) use probe::all_listen;
pub(crate) use relay::relay;
pub(crate) use resolve::resolve;
pub(crate) use snapshot::snapshot;
pub(crate) use status::{report, status};
pub(crate) use unit::{install, uninstall};
pub(crate) use verdict::Report;
pub(crate) use watch::watch;
