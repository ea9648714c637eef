//! `stado registry …`: the fleet's one document.
mod beacon_age;
mod diff;
mod doctor;
mod history;
mod host;
mod host_path;
mod import;
mod myself;
mod pull;
mod push;
mod rollback;
mod set;
mod validate;
mod versions;

pub(crate) use beacon_age::beacon_age;
pub(crate) use diff::diff;
pub(crate) use doctor::{doctor, unplaced_coordinators};
pub(crate) use history::history;
pub(crate) use host::{host_add, host_remove, host_show};
pub(crate) use host_path::{path_list, path_remove, path_set};
pub(crate) use import::import;
pub(crate) use myself::myself;
pub(crate) use pull::pull;
pub(crate) use push::push;
pub(crate) use rollback::rollback;
pub(crate) use set::set;
pub(crate) use validate::validate;
