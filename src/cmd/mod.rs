//! The verbs: a group a folder, a verb a file. A verb reads its configuration, does one thing and prints through `ui`.
mod directory;
mod fleet;
mod input;
mod placement;
mod probe;
mod provenance;
mod registry;
mod resolver;
mod run;
mod serve;
mod service;
mod stopped;
mod storage;
mod tls;
mod vault;
mod write;

pub use run::{devmesh, devmeshd, stado};
pub(crate) use stopped::until_stopped;
