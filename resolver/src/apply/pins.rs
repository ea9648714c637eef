//! Keeps what the registry tells of the fleet's hosts in this account's SSH files: their host keys in `~/.stado/known_hosts`,
//! and, where hosts come in over sshd, a line each in its `authorized_keys`. Whoever joins is known to every host by the time
//! its services are.
use stado_fleet::disk::DiskError;
use stado_fleet::document::Registry;
use stado_fleet::join::{self, Account, Shelf};
use stado_fleet::name::TargetName;
use std::path::PathBuf;
use std::sync::Arc;

/// Where it is kept.
#[derive(Debug, Clone)]
pub struct PinFiles {
    /// `~/.stado/known_hosts`
    pub known_hosts: PathBuf,
    /// The account's `authorized_keys`, where it is ours to keep, and this host's invitations.
    pub account: Option<(Account, Shelf)>,
}

/// What was written last.
#[derive(Debug)]
pub struct Pins {
    files: PinFiles,
    kept: Option<Vec<Option<String>>>,
    failed: Option<String>,
}

impl Pins {
    /// Nothing yet.
    pub fn new(files: PinFiles) -> Self {
        Self { files, kept: None, failed: None }
    }

    /// Writes what is new. A file that cannot be written is said, and tried again with the next walk.
    pub async fn keep(&mut self, registry: &Arc<Registry>, me: &TargetName) {
        let now = told(registry);
        if self.failed.is_none() && self.kept.as_ref() == Some(&now) {
            return;
        }
        let (files, registry, me) = (self.files.clone(), registry.clone(), me.clone());
        let written = tokio::task::spawn_blocking(move || files.write(&registry, &me)).await;
        let failure = match written {
            Ok(written) => written.err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if failure != self.failed
            && let Some(why) = &failure
        {
            tracing::warn!(target: "stado::fleet", "stado resolver: keys of the fleet's hosts are not kept: {why}");
        }
        (self.failed, self.kept) = (failure, Some(now));
    }

    /// What is worth saying.
    pub fn warning(&self) -> Option<String> {
        let why = self.failed.as_ref()?;
        Some(format!("keys of the fleet's hosts are not kept, so that new hosts are not known here: {why}"))
    }
}

impl PinFiles {
    fn write(&self, registry: &Registry, me: &TargetName) -> Result<(), DiskError> {
        join::keep(&self.known_hosts, &join::known_hosts(registry, me), true)?;
        if let Some((account, shelf)) = &self.account {
            // Invitations that cannot be read let nobody in.
            account.keep(registry, me, &shelf.read().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// All that the files are made of.
fn told(registry: &Registry) -> Vec<Option<String>> {
    let of = |target: &stado_fleet::document::Target| {
        let ways = target.paths.iter().map(|path| Some(path.destination.to_string()));
        let keys = target.host_keys.iter().chain(&target.resolver_keys).map(|key| Some(key.clone()));
        [Some(target.name.to_string())].into_iter().chain(ways).chain(keys).chain([None]).collect::<Vec<_>>()
    };
    registry.targets.values().flat_map(of).collect()
}
