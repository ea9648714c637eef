//! `stado route …`: the forward markers of this host, a service at a time (fleet contract §6.14).
mod close;
mod list;
mod open;

pub(crate) use close::close;
pub(crate) use list::list;
pub(crate) use open::open;
