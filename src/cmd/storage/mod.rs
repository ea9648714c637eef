//! This host's store as others see it.
mod serve;

pub(crate) use serve::serve;
