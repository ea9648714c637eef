//! One container → the services it can have, and what is refused of it. Pure (mesh contract §5.2, proxy rule 23).
use super::container::{Binding, Container, Health, Phase};
use super::labels::{self, Wish};
use super::refusal::{Refusal, Why};
use crate::mesh::{Backend, Kind};
use stado_fleet::name::{LoopbackAddr, LoopbackHost, ServiceName};
use std::net::{IpAddr, Ipv4Addr};

/// A service that a container can have.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Name.
    pub name: ServiceName,
    /// Kind.
    pub kind: Kind,
    /// Display hint.
    pub app_protocol: String,
    /// Wished frontend port; 0 for none.
    pub preferred_port: u16,
    /// Hostname, for [`Kind::Http`].
    pub http_host: Option<String>,
    /// Logical owner.
    pub owner_key: String,
    /// Where the container is published.
    pub backend: Backend,
    /// Why it is not served for the moment: paused, starting, unhealthy. `None` is served.
    pub held: Option<String>,
    /// What its health check says, for people.
    pub health: Option<&'static str>,
    /// Whether it asks to be offered to the other hosts of the fleet.
    pub publish: bool,
}

/// What one container comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What it can have.
    pub claims: Vec<Claim>,
    /// What it asked for and cannot have.
    pub refused: Vec<Refusal>,
    /// Whether a later inspection may find a port that is not published yet.
    pub retry: bool,
    /// Labels under our prefix that mean nothing.
    pub unknown: Vec<String>,
}

/// Judges a container. One that did not opt in, or does not run, comes to nothing.
pub fn judge(container: &Container, allow_exposed: bool) -> Verdict {
    let mut verdict = Verdict::default();
    if container.phase == Phase::Stopped || !labels::enabled(&container.labels) {
        return verdict;
    }
    let parsed = labels::parse(&container.labels, &container.name);
    verdict.refused.extend(parsed.faults.into_iter().map(|fault| Refusal::label(container, fault)));
    verdict.unknown = parsed.unknown;
    for wish in parsed.wishes {
        match backend(container, wish.container_port, allow_exposed) {
            Ok(backend) => verdict.claims.push(claim(container, wish, backend)),
            Err(why) => {
                verdict.retry |= matches!(why, Why::NotPublished { shared_network: None, .. });
                verdict.refused.push(Refusal::of(container, wish.name.as_str(), why));
            }
        }
    }
    verdict
}

fn claim(container: &Container, wish: Wish, backend: Backend) -> Claim {
    Claim {
        owner_key: labels::owner_key(&container.labels, &container.name, wish.container_port),
        held: held(container, wish.follow_health),
        health: container.health.as_ref().map(Health::as_str),
        publish: wish.publish,
        name: wish.name,
        kind: wish.kind,
        app_protocol: wish.app_protocol,
        preferred_port: wish.preferred_port,
        http_host: wish.http_host,
        backend,
    }
}

fn held(container: &Container, follow_health: bool) -> Option<String> {
    let name = container.shown();
    if container.phase == Phase::Paused {
        return Some(format!("its container {name} is paused"));
    }
    match container.health.as_ref().filter(|_| follow_health)? {
        Health::Healthy => None,
        Health::Starting => Some(format!("its container {name} is starting: no health check has passed yet")),
        Health::Unhealthy { streak, output } => {
            let output = if output.is_empty() { String::new() } else { format!(": {output}") };
            Some(format!("its container {name} is unhealthy, {streak} checks in a row failed{output}"))
        }
    }
}

fn backend(container: &Container, port: u16, allow_exposed: bool) -> Result<Backend, Why> {
    let published = |protocol: &str| {
        let bindings = container.ports.get(&format!("{port}/{protocol}")).map(Vec::as_slice).unwrap_or_default();
        bindings.iter().filter(|binding| !binding.port.is_empty()).collect::<Vec<_>>()
    };
    let bindings = published("tcp");
    if bindings.is_empty() {
        let udp = !published("udp").is_empty();
        return Err(Why::NotPublished { port, udp, shared_network: container.shared_network.clone() });
    }
    let exposed = bindings.iter().find(|binding| loopback(binding).is_none());
    if let Some(exposed) = exposed.filter(|_| !allow_exposed) {
        return Err(Why::Exposed { port, on: shown(exposed) });
    }
    // Dialled on IPv4 where that is a choice: engines publish there first.
    let on_loopback = |four: bool| {
        bindings.iter().filter_map(|b| loopback(b).map(|ip| (ip, *b))).find(|(ip, _)| ip.is_ipv4() == four || !four)
    };
    if let Some((ip, binding)) = on_loopback(true).or_else(|| on_loopback(false)) {
        return at(ip, binding);
    }
    match bindings.iter().find(|binding| is_wildcard(binding)) {
        Some(binding) => at(Ipv4Addr::LOCALHOST.into(), binding),
        None => Err(Why::Elsewhere { port, on: bindings.first().map(|b| shown(b)).unwrap_or_default() }),
    }
}

fn at(ip: IpAddr, binding: &Binding) -> Result<Backend, Why> {
    let port = binding.port.parse().ok().filter(|port| *port != 0).ok_or_else(|| Why::BadPort(binding.port.clone()))?;
    Ok(Backend { host: ip.to_string(), port, addr: LoopbackAddr { host: LoopbackHost::Ip(ip), port }, via: None })
}

fn loopback(binding: &Binding) -> Option<IpAddr> {
    binding.ip.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()).filter(IpAddr::is_loopback)
}

/// All addresses of the host: written out, or by writing none.
fn is_wildcard(binding: &Binding) -> bool {
    binding.ip.is_empty() || binding.ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
}

fn shown(binding: &Binding) -> String {
    if binding.ip.is_empty() { "all addresses".into() } else { binding.ip.clone() }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
