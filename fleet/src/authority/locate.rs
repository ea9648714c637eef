//! Where the registry is, seen from this host (fleet contract §3.1).
use crate::admit::Snapshot;
use crate::document::Registry;
use crate::last_good::Copy;
use crate::name::{ConnectionPath, TargetName};
use crate::store::RegistryStore;
use std::sync::Arc;

/// Where the registry is read from and written to, seen from this host.
#[derive(Debug, Clone)]
pub enum Source {
    /// This host's own store.
    Store(Arc<dyn RegistryStore>),
    /// Another target, over SSH.
    Remote(RemoteAuthority),
}

/// An authority on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAuthority {
    /// Target.
    pub target: TargetName,
    /// Absolute path of `stado` there.
    pub command: String,
    /// Its connection paths, in order.
    pub paths: Vec<ConnectionPath>,
    /// The store that this host shares with it, read when no snapshot can be.
    pub shared: Option<SharedStore>,
    /// The epoch of the registry that names it.
    pub epoch: u64,
    /// Hosts that may have been promoted in its place, asked when it does not answer.
    pub standbys: Vec<Standby>,
}

/// A host that may become the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standby {
    /// Target.
    pub target: TargetName,
    /// Absolute path of `stado` there.
    pub command: String,
    /// Its connection paths, in order.
    pub paths: Vec<ConnectionPath>,
}

/// The declared standbys of a registry but for its authority and `me`.
pub fn standbys(registry: &Registry, me: Option<&TargetName>) -> Vec<Standby> {
    let authority = registry.directory.as_ref().map(|d| &d.authority_target);
    let others = registry.succession.standbys.iter().filter(|name| Some(*name) != authority && Some(*name) != me);
    others.filter_map(|name| host(registry, name)).collect()
}

/// How a host is asked as an authority.
pub(super) fn host(registry: &Registry, name: &TargetName) -> Option<Standby> {
    let target = registry.targets.get(name)?;
    // Where it says nothing of itself, it is taken to be where the authority's is.
    let command = target.stado_command.clone();
    let command = command.or_else(|| Some(registry.directory.as_ref()?.authority_command.clone()))?;
    Some(Standby { target: name.clone(), command, paths: target.paths.clone() })
}

impl From<Standby> for RemoteAuthority {
    fn from(host: Standby) -> Self {
        let Standby { target, command, paths } = host;
        Self { target, command, paths, shared: None, epoch: 0, standbys: Vec::new() }
    }
}

/// A store that several hosts read and write.
#[derive(Debug, Clone)]
pub struct SharedStore(pub Arc<dyn RegistryStore>);

impl PartialEq for SharedStore {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedStore {}

impl RemoteAuthority {
    /// The command line of a verb there.
    pub fn verb(&self, verb: &str) -> String {
        format!("{} {verb}", super::exec::quoted(&self.command))
    }
}

impl Source {
    /// As people see it: the store's location, or `<target>:registry.json`.
    pub fn location(&self) -> String {
        match self {
            Self::Store(store) => store.location(),
            Self::Remote(authority) => format!("{}:registry.json", authority.target),
        }
    }

    /// `local` or `ssh`, as `resolver status` names it (§4.10).
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(_) => "local",
            Self::Remote(_) => "ssh",
        }
    }
}

/// Picks the source for a host: a store that every host reads and writes by itself → that; no copy, or the authority is `me` → the store; else the remote authority named by the copy.
pub fn locate(copy: Option<&Copy>, me: Option<&TargetName>, store: Arc<dyn RegistryStore>) -> Source {
    copy.map_or(Source::Store(Arc::clone(&store)), |c| source(&c.snapshot.valid.registry, me, store))
}

/// The next source after a valid snapshot: the authority that it names (§4.3). A new authority is so adopted only after
/// the old one delivered a snapshot naming it.
pub fn next_source(snapshot: &Snapshot, me: &TargetName, store: Arc<dyn RegistryStore>) -> Source {
    source(&snapshot.valid.registry, Some(me), store)
}

/// As [`next_source`], of a registry.
pub(super) fn next_of(registry: &Registry, me: &TargetName, store: Arc<dyn RegistryStore>) -> Source {
    source(registry, Some(me), store)
}

fn source(registry: &Registry, me: Option<&TargetName>, store: Arc<dyn RegistryStore>) -> Source {
    match &registry.directory {
        Some(directory) if !store.direct() && me != Some(&directory.authority_target) => {
            let paths = registry.targets.get(&directory.authority_target).map(|t| t.paths.clone());
            Source::Remote(RemoteAuthority {
                target: directory.authority_target.clone(),
                command: directory.authority_command.clone(),
                paths: paths.unwrap_or_default(),
                shared: store.shared().then(|| SharedStore(store)),
                epoch: registry.succession.epoch,
                standbys: standbys(registry, me),
            })
        }
        _ => Source::Store(store),
    }
}
