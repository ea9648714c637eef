//! The verbs: a group a folder, a verb a file. A verb reads its configuration, does one thing and prints through `ui`.
mod age;
mod bridge;
mod database;
mod directory;
mod doctor;
mod fleet;
mod host;
mod input;
mod limits;
mod observations;
mod placement;
mod probe;
mod provenance;
mod registry;
mod remote;
mod resolver;
mod route;
mod run;
mod serve;
mod service;
mod stopped;
mod storage;
mod tls;
mod vault;
mod write;

pub use run::{devmesh, devmeshd, stado};
pub(crate) use stopped::{Wanted, unless_stopped, until_stopped};
