//! What a mesh is started with. Values only: layering and provenance belong to the command line.
use super::error::MeshError;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Shortest and longest lease, in seconds (mesh contract §1.4).
pub(super) const TTL_BOUNDS: std::ops::RangeInclusive<i64> = 3..=3600;

/// Configuration of one mesh (mesh contract §3.3). [`Default`] carries the documented defaults, with paths left empty.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the control API listens.
    pub socket: PathBuf,
    /// The state file; `hostnames.json` and the lock live beside it.
    pub state_path: PathBuf,
    /// Host that frontends are bound on and people are given.
    pub frontend_host: IpAddr,
    /// First port of the inclusive range.
    pub port_min: u16,
    /// Last port of the inclusive range.
    pub port_max: u16,
    /// Lease of a registration that names none; 3 s to 1 h.
    pub lease_ttl: Duration,
    /// How long a frontend without a backend stays bound; zero means for ever.
    pub idle_grace: Duration,
    /// How long streams may go on after a stop was asked for.
    pub shutdown_timeout: Duration,
    /// Further addresses of this machine on which each frontend is opened, such as a container bridge.
    pub also_bind: Vec<IpAddr>,
    /// Addresses among them that may reach beyond this machine, because somebody said so twice.
    pub beyond_this_machine: Vec<IpAddr>,
    /// Version that `GET /v1/health` reports.
    pub version: &'static str,
    /// Values that replace those of the start while the mesh runs: what a reload of the configuration found.
    pub tuning: Option<watch::Receiver<Tuning>>,
}

/// The part of a configuration that may change while the mesh runs. Ports that are held stay where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// First and last port of the range for new assignments.
    pub ports: (u16, u16),
    /// Lease of a new registration that names none.
    pub lease_ttl: Duration,
    /// How long a frontend without a backend stays bound; zero means for ever.
    pub idle_grace: Duration,
    /// How long streams may go on after a stop was asked for.
    pub shutdown_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            socket: PathBuf::new(),
            state_path: PathBuf::new(),
            frontend_host: Ipv4Addr::LOCALHOST.into(),
            port_min: 15000,
            port_max: 19999,
            lease_ttl: Duration::from_secs(15),
            idle_grace: Duration::from_secs(600),
            shutdown_timeout: Duration::from_secs(5),
            also_bind: Vec::new(),
            beyond_this_machine: Vec::new(),
            version: env!("CARGO_PKG_VERSION"),
            tuning: None,
        }
    }
}

impl Config {
    /// Refuses values that no mesh can run with, in the words of mesh contract §4.
    pub fn validate(&self) -> Result<(), MeshError> {
        let bad = |text: String| Err(MeshError::Config(text));
        if self.port_min == 0 || self.port_min > self.port_max {
            return bad(format!("invalid tcp frontend port range {}-{}", self.port_min, self.port_max));
        }
        let (low, high) = (*TTL_BOUNDS.start() as u64, *TTL_BOUNDS.end() as u64);
        if self.lease_ttl < Duration::from_secs(low) || self.lease_ttl > Duration::from_secs(high) {
            return bad("lease_ttl must be between 3s and 1h0m0s".into());
        }
        if self.shutdown_timeout.is_zero() {
            return bad("shutdown_timeout must be positive".into());
        }
        Ok(())
    }

    /// The file that is locked while a mesh works on this state.
    pub fn lock_path(&self) -> PathBuf {
        let mut name = self.state_path.as_os_str().to_owned();
        name.push(".lock");
        PathBuf::from(name)
    }

    /// The values that may change later.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            ports: (self.port_min, self.port_max),
            lease_ttl: self.lease_ttl,
            idle_grace: self.idle_grace,
            shutdown_timeout: self.shutdown_timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused_in_the_contracts_words() {
        let text = |c: Config| c.validate().unwrap_err().to_string();
        assert_eq!(
            text(Config { port_min: 20000, ..Config::default() }),
            "invalid tcp frontend port range 20000-19999"
        );
        assert_eq!(
            text(Config { lease_ttl: Duration::from_secs(2), ..Config::default() }),
            "lease_ttl must be between 3s and 1h0m0s"
        );
        assert_eq!(
            text(Config { shutdown_timeout: Duration::ZERO, ..Config::default() }),
            "shutdown_timeout must be positive"
        );
        assert!(Config::default().validate().is_ok());
    }
}
