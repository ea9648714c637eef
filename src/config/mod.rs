//! Configuration: layers with the source of every value. The environment is read here and nowhere else.

mod databases;
mod docker;
mod duration;
mod engines;
mod env;
mod fleet;
mod host;
mod inherited;
mod layers;
mod mesh;
mod near;
mod objects;
mod store;

pub(crate) use databases::{Database, Databases, Engine, Scope, database, edit_databases};
pub(crate) use docker::docker_lookup;
pub use duration::{format_duration, parse_duration};
pub use env::Env;
pub use fleet::{Backend, FleetFile, Storage};
pub use host::HostConfig;
pub(crate) use inherited::inherited;
pub use layers::{Layers, Setting, Source};
pub use mesh::{MeshLayers, MeshSettings};
pub(crate) use near::nearest;
pub(crate) use objects::{ObjectFlags, address, object_config, object_role, pair};

use stado_fleet::fault::{Blame, Class, Faulty};

/// Configuration that cannot be used; the sentence names the setting or the file, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Faulty for ConfigError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        Class::Config
    }
}

/// Makes a [`ConfigError`].
pub(crate) fn wrong<T>(sentence: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError(sentence.into()))
}
