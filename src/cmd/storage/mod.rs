//! This host's store as others see it.
mod serve;

pub(crate) use serve::{cannot_listen, serve};
