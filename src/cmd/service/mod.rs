//! Verbs that talk to the daemon of this host: `stado service …`, `devmesh …`.
mod connections;
mod daemon;
mod doctor;
mod env;
mod health;
mod inspect;
mod list;
mod manage;
mod register;
mod resolve;
mod run;
mod unknown;
mod variables;
mod wait;

pub(crate) use connections::connections;
pub(crate) use daemon::api;
pub(crate) use doctor::{checks as mesh_checks, doctor};
pub(crate) use env::env;
pub(crate) use health::health;
pub(crate) use inspect::inspect;
pub(crate) use list::list;
pub(crate) use manage::{forget, pin, rename};
pub(crate) use register::register;
pub(crate) use resolve::resolve;
pub(crate) use run::run;
pub(crate) use unknown::known;
pub(crate) use wait::wait;
