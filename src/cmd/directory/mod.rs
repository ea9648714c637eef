//! `stado service directory …`: where the fleet's services live.
mod bind;
mod connect;
mod consumer;
mod endpoint;
mod look;
mod profiles;
mod publish;
pub(crate) mod reach;
mod show;
mod through;

pub(crate) use bind::bind;
pub(crate) use connect::connect;
pub(crate) use consumer::{add as consumer_add, remove as consumer_remove};
pub(crate) use endpoint::endpoint;
pub(crate) use look::Look;
pub(crate) use profiles::profiles;
pub(crate) use publish::publish;
pub(crate) use show::show;
