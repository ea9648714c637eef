//! `stado registry …`: the fleet's one document.
mod host_add;
mod myself;
mod pull;
mod push;
mod set;
mod validate;

pub(crate) use host_add::host_add;
pub(crate) use myself::myself;
pub(crate) use pull::pull;
pub(crate) use push::push;
pub(crate) use set::set;
pub(crate) use validate::validate;
