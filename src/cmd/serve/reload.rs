//! SIGHUP: the configuration is read again. What can change while the daemon runs is put in force; the rest is named.
use super::tuning;
use crate::args::MeshFlags;
use crate::config::{Env, HostConfig, Layers, MeshLayers, MeshSettings};
use crate::exit::Failure;
use stado_resolver::mesh::Tuning;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Settings that a running daemon takes up.
const LIVE: [&str; 5] =
    ["tcp-frontend-min", "tcp-frontend-max", "lease-ttl", "frontend-idle-grace", "shutdown-timeout"];

/// What a daemon was started from, to read it again.
pub(super) struct Reload {
    flags: MeshFlags,
    env: Env,
    started: Layers,
    in_force: Mutex<Layers>,
    /// The fleet's side: who this host was said to be, and what was read.
    fleet: Option<(Option<String>, HostConfig)>,
    tell: watch::Sender<Tuning>,
}

/// What a reload found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    applied: Vec<&'static str>,
    needs_restart: Vec<&'static str>,
}

impl Reload {
    pub(super) fn new(
        flags: &MeshFlags,
        env: &Env,
        layers: &MeshLayers,
        settings: &MeshSettings,
        fleet: Option<(Option<String>, HostConfig)>,
    ) -> Self {
        Self {
            flags: flags.clone(),
            env: env.clone(),
            started: layers.layers.clone(),
            in_force: Mutex::new(layers.layers.clone()),
            fleet,
            tell: watch::Sender::new(tuning(settings)),
        }
    }

    /// The values in force, from now on.
    pub(super) fn tuning(&self) -> watch::Receiver<Tuning> {
        self.tell.subscribe()
    }

    /// Whether a daemon could be started from the configuration as it is now.
    pub(super) fn check(&self) -> Result<(), Failure> {
        MeshLayers::read(&self.flags, &self.env)?.settings(&self.env)?;
        if let Some((target, _)) = &self.fleet {
            HostConfig::read(&self.env, target.as_deref())?.open_store()?;
        }
        Ok(())
    }

    /// Reads again, applies and says what came of it. A configuration that cannot be used changes nothing.
    pub(super) fn run(&self) {
        match self.read() {
            Ok(Found { applied, needs_restart }) => {
                let (applied, needs_restart) = (words(&applied), words(&needs_restart));
                tracing::info!(target: "stado::mesh", applied, needs_restart, "config_reloaded");
            }
            Err(failure) => {
                tracing::warn!(target: "stado::mesh", error = failure.message, "config_reload_failed");
            }
        }
    }

    fn read(&self) -> Result<Found, Failure> {
        let read = MeshLayers::read(&self.flags, &self.env)?;
        let settings = read.settings(&self.env)?;
        let mut needs_restart = match &self.fleet {
            Some((target, before)) => before.changed(&HostConfig::read(&self.env, target.as_deref())?),
            None => Vec::new(),
        };
        for warning in read.warnings.iter().chain(&settings.unserved) {
            tracing::warn!(target: "stado::mesh", warning, "config_warning");
        }
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let mut applied = in_force.changed(&read.layers);
        applied.retain(|name| LIVE.contains(name));
        needs_restart.extend(self.started.changed(&read.layers).into_iter().filter(|name| !LIVE.contains(name)));
        *in_force = read.layers;
        self.tell.send_replace(tuning(&settings));
        Ok(Found { applied, needs_restart })
    }
}

fn words(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_can_change_does_and_the_rest_is_named_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mesh.json");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write(r#"{"lease_ttl":"20s","tcp_frontend_min":24000,"tcp_frontend_max":24100}"#);
        let env = Env::of([("HOME", "/h"), ("DEVMESH_CONFIG", file.to_str().unwrap())]);
        let flags = MeshFlags::default();
        let layers = MeshLayers::read(&flags, &env).unwrap();
        let reload = Reload::new(&flags, &env, &layers, &layers.settings(&env).unwrap(), None);
        let found = |applied: &[&'static str], needs_restart: &[&'static str]| Found {
            applied: applied.to_vec(),
            needs_restart: needs_restart.to_vec(),
        };
        assert_eq!(reload.read().unwrap(), Found::default());
        write(r#"{"lease_ttl":"30s","tcp_frontend_min":24000,"tcp_frontend_max":24100,"socket":"/s"}"#);
        assert_eq!(reload.read().unwrap(), found(&["lease-ttl"], &["socket"]));
        assert_eq!(reload.tuning().borrow().lease_ttl, Duration::from_secs(30));
        assert_eq!(reload.read().unwrap(), found(&[], &["socket"]));
        write(r#"{"lease_ttl":"1s"}"#);
        assert!(reload.read().unwrap_err().message.contains("lease_ttl must be between"));
        assert!(reload.check().is_err());
        assert_eq!(reload.tuning().borrow().lease_ttl, Duration::from_secs(30));
    }
}
