//! One placement profile, read from a valid document (fleet contract §1.5).
use super::{PlacementError, Run, Unit};
use crate::document::Document;
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use url::Url;

/// How long a probe may take to succeed, unless it says so itself.
const PROBE: Duration = Duration::from_secs(60);

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name.
    pub name: String,
    /// Services, which move together.
    pub services: Vec<String>,
    /// The order in which they are stopped.
    pub stop_order: Vec<String>,
    /// The order in which they are started.
    pub start_order: Vec<String>,
    /// Files and trees that move along.
    pub state: Vec<StatePath>,
    /// Hosts that may run it, in document order.
    pub hosts: IndexMap<String, Destination>,
    /// Units of any host that follow the placement.
    pub routing: Vec<Routing>,
    /// What a unit file can be written from, by service.
    pub runs: IndexMap<String, Run>,
}

/// State of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatePath {
    /// Relative to its root.
    pub path: String,
    /// Whether a move without it is refused.
    pub required: bool,
    /// Whether the root is the host's `work_root`, else the home directory.
    pub work: bool,
    /// A directory with all that is in it, else one file.
    pub tree: bool,
}

/// One host of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Destination {
    /// Units as written, by service.
    pub units: IndexMap<String, Value>,
    /// How each service shows that it is there.
    pub probes: Vec<Probe>,
    /// `work_root` of the target.
    pub work_root: Option<String>,
}

/// A probe, as its host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Service.
    pub service: String,
    /// `http`: a status below 500 counts. Anything else: an accepted connection.
    pub url: Url,
    /// How long until it has to succeed.
    pub within: Duration,
}

/// A unit that is to run exactly while a host is the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// Where the unit is.
    pub host: String,
    /// The unit as written.
    pub unit: Value,
    /// The destination with which it runs.
    pub active_when_destination: String,
}

/// No profile fits; `Display` is the contract's sentence, and what does fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no placement profile matches services {}{hint}", .services.join(", "))]
pub struct NoProfile {
    services: Vec<String>,
    hint: String,
}

impl From<NoProfile> for PlacementError {
    fn from(none: NoProfile) -> Self {
        let not_found = crate::fault::Class::NotFound;
        Self { class: not_found, ..Self::refused(none.to_string()) }
    }
}

impl Probe {
    /// Where it is asked, as its host sees it; `localhost` is both families, in this order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let port = self.url.port_or_known_default().unwrap_or_default();
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(ip) => vec![(ip, port).into()],
            Err(_) => vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()],
        }
    }
}

impl Profile {
    /// The profile that has exactly these services, in any order.
    ///
    /// # Errors
    /// There is none; a profile that has them among others is named, since it moves as a whole.
    pub fn of_services(document: &Document, services: &[String]) -> Result<Self, NoProfile> {
        let wanted: BTreeSet<&str> = services.iter().map(String::as_str).collect();
        let all: Vec<Self> = Self::all(document).collect();
        let set = |profile: &Self| profile.services.iter().cloned().collect::<BTreeSet<String>>();
        if let Some(found) = all.iter().find(|p| set(p).iter().map(String::as_str).eq(wanted.iter().copied())) {
            return Ok(found.clone());
        }
        let larger = all.iter().find(|p| wanted.iter().all(|service| p.services.iter().any(|s| s == service)));
        let hint = larger.map_or(String::new(), |p| {
            format!("; profile \"{}\" moves {} together: name all of them", p.name, p.services.join(", "))
        });
        Err(NoProfile { services: services.to_vec(), hint })
    }

    /// The profile that moves a service.
    ///
    /// # Errors
    /// None does.
    pub fn with_service(document: &Document, service: &str) -> Result<Self, NoProfile> {
        let found = Self::all(document).find(|p| p.services.iter().any(|s| s == service));
        found.ok_or_else(|| NoProfile { services: vec![service.to_owned()], hint: String::new() })
    }

    /// A profile by its name.
    pub fn named(document: &Document, name: &str) -> Option<Self> {
        Self::all(document).find(|p| p.name == name)
    }

    fn all(document: &Document) -> impl Iterator<Item = Self> + '_ {
        let list = document.section("placement_profiles").and_then(Value::as_array);
        list.into_iter().flatten().map(|raw| Self::read(document, raw))
    }

    fn read(document: &Document, raw: &Value) -> Self {
        let services = words(raw, "services");
        let entry = |service: &str| document.value().pointer("/service_directory/services")?.get(service);
        let run = |service: &String| Some((service.clone(), Run::read(entry(service)?)?));
        Self {
            name: text(raw, "name").to_owned(),
            stop_order: words(raw, "stop_order"),
            start_order: words(raw, "start_order"),
            state: each(raw, "state").map(state).collect(),
            hosts: hosts(document, raw),
            routing: each(raw, "routing").map(routing).collect(),
            runs: services.iter().filter_map(run).collect(),
            services,
        }
    }

    /// One of its hosts.
    ///
    /// # Errors
    /// The profile does not have it.
    pub fn host(&self, host: &str) -> Result<&Destination, PlacementError> {
        self.hosts.get(host).ok_or_else(|| {
            let hosts: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
            let name = &self.name;
            PlacementError::refused(format!(
                "placement profile \"{name}\" has no host \"{host}\"; it may run on {}",
                hosts.join(", ")
            ))
        })
    }

    /// The units of a host, in an order of services.
    ///
    /// # Errors
    /// One of them cannot be driven.
    pub fn units(&self, host: &str, order: &[String]) -> Result<Vec<Unit>, PlacementError> {
        let units = &self.host(host)?.units;
        order.iter().map(|service| Unit::read(service, host, units.get(service).unwrap_or(&Value::Null))).collect()
    }
}

/// Where the services of a profile are: active in the directory, or, for those that it does not have, by their units.
///
/// # Errors
/// On several hosts, or on none.
pub fn active_host(document: &Document, profile: &Profile) -> Result<String, PlacementError> {
    let mut hosts: BTreeSet<String> = BTreeSet::new();
    for service in &profile.services {
        let entry = document.value().pointer("/service_directory/services").and_then(|all| all.get(service));
        match entry.and_then(|e| e.get("active_host")).and_then(Value::as_str) {
            Some(host) => drop(hosts.insert(host.to_owned())),
            None => hosts.extend(holders(document, profile, service)),
        }
    }
    let hosts: Vec<String> = hosts.into_iter().collect();
    match hosts.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(PlacementError::config(format!("placement profile \"{}\" is active on no host", profile.name))),
        several => {
            let sentence =
                format!("placement profile \"{}\" is active on multiple hosts: {}", profile.name, several.join(", "));
            Err(PlacementError::config(sentence))
        }
    }
}

/// Hosts whose target declares the unit that the profile gives the service there.
fn holders(document: &Document, profile: &Profile, service: &str) -> Vec<String> {
    let declares = |host: &&String, wanted: &Value| {
        let target = each(document.value(), "targets").find(|t| text(t, "name") == host.as_str());
        let names = [text(wanted, "name"), text(wanted, "unit")];
        target.into_iter().flat_map(|t| each(t, "services")).any(|unit| {
            ["name", "label", "unit"].iter().any(|key| !text(unit, key).is_empty() && names.contains(&text(unit, key)))
        })
    };
    let units = profile.hosts.iter().filter_map(|(host, d)| Some((host, d.units.get(service)?)));
    units.filter(|(host, unit)| declares(host, unit)).map(|(host, _)| host.clone()).collect()
}

fn hosts(document: &Document, raw: &Value) -> IndexMap<String, Destination> {
    let work_root = |host: &str| {
        let target = each(document.value(), "targets").find(|t| text(t, "name") == host)?;
        Some(text(target, "work_root").to_owned()).filter(|root| root.starts_with('/'))
    };
    let all = raw.get("hosts").and_then(Value::as_object).into_iter().flatten();
    let read = |(host, raw): (&String, &Value)| {
        let units = raw.get("units").and_then(Value::as_object).into_iter().flatten();
        let destination = Destination {
            units: units.map(|(service, unit)| (service.clone(), unit.clone())).collect(),
            probes: each(raw, "probes").filter_map(probe).collect(),
            work_root: work_root(host),
        };
        (host.clone(), destination)
    };
    all.map(read).collect()
}

fn probe(raw: &Value) -> Option<Probe> {
    let within = raw.get("seconds").and_then(Value::as_u64).map_or(PROBE, Duration::from_secs);
    Some(Probe { service: text(raw, "service").to_owned(), url: Url::parse(text(raw, "url")).ok()?, within })
}

fn state(raw: &Value) -> StatePath {
    let flag = |key: &str| raw.get(key).and_then(Value::as_bool).unwrap_or(false);
    StatePath {
        path: text(raw, "path").to_owned(),
        required: flag("required"),
        work: text(raw, "root") == "work",
        tree: flag("tree"),
    }
}

fn routing(raw: &Value) -> Routing {
    Routing {
        host: text(raw, "host").to_owned(),
        unit: raw.get("unit").cloned().unwrap_or_default(),
        active_when_destination: text(raw, "active_when_destination").to_owned(),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn each<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn words(value: &Value, key: &str) -> Vec<String> {
    each(value, key).filter_map(|word| word.as_str().map(str::to_owned)).collect()
}
