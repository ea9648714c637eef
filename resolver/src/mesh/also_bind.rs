//! Frontends on further addresses of this machine, such as a container bridge's, so that containers reach them too.
//! An address that is not there yet is taken when it comes; one that reaches beyond this machine only when it was allowed.
use super::frontends::{Frontends, Runtime};
use crate::conn::{self, Backend, Bound, Families, Reach};
use stado_fleet::name::ServiceName;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// The further addresses, and what was last said of each.
#[derive(Debug, Default)]
pub(crate) struct AlsoBind {
    wanted: Vec<IpAddr>,
    beyond: Vec<IpAddr>,
    said: Mutex<HashMap<IpAddr, String>>,
}

impl AlsoBind {
    /// `beyond`: those that may reach beyond this machine.
    pub(crate) fn new(wanted: Vec<IpAddr>, beyond: Vec<IpAddr>) -> Self {
        Self { wanted, beyond, said: Mutex::default() }
    }

    /// The copies of a frontend on `port` that can be had now.
    pub(super) fn bind_all(&self, name: &ServiceName, port: u16) -> Vec<Bound> {
        let usable = self.wanted.iter().filter(|ip| self.usable(**ip));
        usable.filter_map(|ip| self.bind(name, SocketAddr::new(*ip, port)).ok()).collect()
    }

    /// The further addresses that `runtime` does not have, with why as far as is known.
    pub(super) fn missing(&self, runtime: &Runtime) -> Option<String> {
        let ip = self.wanted.iter().find(|ip| !runtime.has(**ip))?;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).get(ip).cloned();
        let why = said.unwrap_or_else(|| "it is tried again".into());
        Some(format!("not on {}: {why}", SocketAddr::new(*ip, runtime.port())))
    }

    /// Whether a bind on `ip` makes sense now. Asked again each time: bridges come and go.
    fn usable(&self, ip: IpAddr) -> bool {
        let why = match conn::reach(ip) {
            _ if self.beyond.contains(&ip) => return true,
            Reach::Machine => return true,
            Reach::Absent => "no bridge of this machine has this address now".to_owned(),
            Reach::Beyond(why) => format!("it {why}, and that was not allowed"),
        };
        self.say(ip, why);
        false
    }

    fn bind(&self, name: &ServiceName, addr: SocketAddr) -> Result<Bound, ErrorKind> {
        match conn::bind(addr, Families::AtLeastOne) {
            Ok(bound) => {
                self.said.lock().unwrap_or_else(PoisonError::into_inner).remove(&addr.ip());
                Ok(bound)
            }
            Err(error) => {
                self.say(addr.ip(), format!("for service {name}, {}", conn::refused(&error)));
                Err(error.source.kind())
            }
        }
    }

    /// Logs a reason when it is new.
    fn say(&self, ip: IpAddr, why: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(&ip) != Some(&why) {
            tracing::warn!(target: "stado::mesh", address = %ip, error = why, "frontend_also_bind_failed");
            said.insert(ip, why);
        }
    }
}

impl Frontends {
    /// Binds what was missing and can be had now. `current` tells a service's backend.
    pub(super) fn bind_missing(&self, current: impl Fn(&ServiceName) -> Backend) {
        for ip in &self.also_bind.wanted {
            let missing = self.without(*ip);
            if missing.is_empty() || !self.also_bind.usable(*ip) {
                continue;
            }
            for (name, port) in missing {
                match self.also_bind.bind(&name, SocketAddr::new(*ip, port)) {
                    Ok(bound) => self.add(&name, bound, || current(&name)),
                    // The address itself is gone: the other names would be told the same.
                    Err(ErrorKind::AddrNotAvailable) => break,
                    Err(_) => {}
                }
            }
        }
    }
}
