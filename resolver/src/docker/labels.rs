//! Labels → the services that a container asks for, or what is wrong with each label. Pure (mesh contract §5.1).
//!
//! `io.devmesh.<key>` describes one service, `io.devmesh.<id>.<key>` one more per `<id>`. One wrong service takes no
//! other with it.
use super::host_template::{self, Words};
use crate::http::hostname;
use crate::mesh::Kind;
use crate::mesh::names;
use stado_fleet::name::ServiceName;
use std::collections::{BTreeMap, BTreeSet};

/// What all our labels begin with.
pub const PREFIX: &str = "io.devmesh.";
/// The label that opts a container in.
pub const ENABLE: &str = "io.devmesh.enable";
const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";
/// What follows the prefix, and the index where there is one.
pub(super) const KEYS: [&str; 8] =
    ["name", "container-port", "kind", "app-protocol", "preferred-port", "http-host", "follow-health", "publish"];

/// Labels of a container.
pub type Labels = BTreeMap<String, String>;

/// One service that a container asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Name of the service.
    pub name: ServiceName,
    /// The port that the container listens on.
    pub container_port: u16,
    /// Kind.
    pub kind: Kind,
    /// Display hint; may be empty.
    pub app_protocol: String,
    /// Wished frontend port; 0 for none.
    pub preferred_port: u16,
    /// Hostname, for [`Kind::Http`].
    pub http_host: Option<String>,
    /// Serve only while the container's health check says `healthy`.
    pub follow_health: bool,
    /// Offer it to the other hosts of the fleet, where this host lets containers do so.
    pub publish: bool,
}

/// A label that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFault {
    /// The label.
    pub label: String,
    /// The service it belongs to, as far as it is named.
    pub service: String,
    /// What is wrong.
    pub reason: String,
}

/// What the labels of one container say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Services that can be judged further.
    pub wishes: Vec<Wish>,
    /// Services that cannot.
    pub faults: Vec<LabelFault>,
    /// Labels under our prefix that mean nothing; worth a line, never a refusal.
    pub unknown: Vec<String>,
}

/// Whether the container opted in.
pub fn enabled(labels: &Labels) -> bool {
    labels.get(ENABLE).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Names of services that the labels of a container ask for, as they are written. None if it did not opt in.
pub fn asks_for(labels: &Labels) -> BTreeSet<String> {
    let names = labels.iter().filter(|(label, _)| {
        let index = label.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix("name"));
        index.is_some_and(|index| index.is_empty() || index.ends_with('.'))
    });
    names.filter(|_| enabled(labels)).map(|(_, name)| name.trim().to_owned()).collect()
}

/// Compose project and service, when Compose made the container.
pub fn compose(labels: &Labels) -> Option<(&str, &str)> {
    let get = |label| labels.get(label).map(String::as_str).filter(|value| !value.is_empty());
    Some((get(PROJECT)?, get(SERVICE)?))
}

/// The logical owner: it outlives the container (mesh contract §5.1).
pub fn owner_key(labels: &Labels, container: &str, container_port: u16) -> String {
    match compose(labels) {
        Some((project, service)) => format!("docker:{project}:{service}:{container_port}"),
        None if container.is_empty() => format!("docker:unknown:{container_port}"),
        None => format!("docker:{container}:{container_port}"),
    }
}

/// Reads the labels of a container that opted in. `container` is its name without the slash.
pub fn parse(labels: &Labels, container: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut indexes = BTreeSet::new();
    for label in labels.keys().filter(|label| *label != ENABLE) {
        let Some(rest) = label.strip_prefix(PREFIX) else { continue };
        match rest.rsplit_once('.') {
            None if KEYS.contains(&rest) => {}
            Some((index, key)) if KEYS.contains(&key) && !index.is_empty() && !index.contains('.') => {
                indexes.insert(index);
            }
            _ => parsed.unknown.push(label.clone()),
        }
    }
    let plain = ["name", "container-port"].iter().any(|key| labels.contains_key(&format!("{PREFIX}{key}")));
    if plain || indexes.is_empty() {
        parsed.add(&One { labels, container, prefix: PREFIX.to_owned() });
    }
    for index in indexes {
        parsed.add(&One { labels, container, prefix: format!("{PREFIX}{index}.") });
    }
    parsed
}

impl Parsed {
    fn add(&mut self, one: &One<'_>) {
        match one.wish() {
            Ok(wish) if self.wishes.iter().any(|other| other.name == wish.name) => self.faults.push(LabelFault {
                label: one.label("name"),
                service: wish.name.to_string(),
                reason: format!("{}={} names a service of this container a second time", one.label("name"), wish.name),
            }),
            Ok(wish) => self.wishes.push(wish),
            Err(fault) => self.faults.push(fault),
        }
    }
}

/// The labels of one service.
struct One<'a> {
    labels: &'a Labels,
    container: &'a str,
    prefix: String,
}

impl One<'_> {
    fn label(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The value, trimmed; empty counts as absent.
    fn get(&self, key: &str) -> &str {
        self.labels.get(&self.label(key)).map(|value| value.trim()).unwrap_or_default()
    }

    fn fault<T>(&self, key: &str, reason: String) -> Result<T, LabelFault> {
        Err(LabelFault { label: self.label(key), service: self.get("name").to_owned(), reason })
    }

    fn wish(&self) -> Result<Wish, LabelFault> {
        let name = self.name()?;
        let container_port = self.port("container-port")?;
        let kind = self.kind()?;
        let preferred_port = if self.get("preferred-port").is_empty() { 0 } else { self.port("preferred-port")? };
        let http_host = self.http_host(kind, &name)?;
        let app_protocol = self.get("app-protocol").to_owned();
        Ok(Wish {
            name,
            container_port,
            kind,
            app_protocol,
            preferred_port,
            http_host,
            follow_health: self.yes_or_no("follow-health")?,
            publish: self.yes_or_no("publish")?,
        })
    }

    fn name(&self) -> Result<ServiceName, LabelFault> {
        match self.get("name") {
            "" => self.fault("name", format!("{} is required when {ENABLE}=true", self.label("name"))),
            name => names::service_name(name).or_else(|error| self.fault("name", error.to_string())),
        }
    }

    fn port(&self, key: &str) -> Result<u16, LabelFault> {
        let text = self.get(key);
        let port = text.parse::<u16>().ok().filter(|port| *port != 0);
        match port {
            Some(port) => Ok(port),
            None if text.is_empty() => self.fault(key, format!("{} is required when {ENABLE}=true", self.label(key))),
            None => self.fault(key, format!("invalid {}={}", self.label(key), names::quoted(text))),
        }
    }

    fn kind(&self) -> Result<Kind, LabelFault> {
        match self.get("kind") {
            "" | "tcp" => Ok(Kind::Tcp),
            "http" => Ok(Kind::Http),
            other => self.fault("kind", format!("unsupported {}={}", self.label("kind"), names::quoted(other))),
        }
    }

    fn http_host(&self, kind: Kind, name: &ServiceName) -> Result<Option<String>, LabelFault> {
        if kind == Kind::Tcp {
            return Ok(None);
        }
        let text = self.get("http-host");
        if text.is_empty() {
            let made = hostname::of_service(name.as_str()).or_else(|why| self.fault("http-host", why))?;
            return names::hostname(&made).map(Some).or_else(|error| self.fault("http-host", error.to_string()));
        }
        let (project, service) = compose(self.labels).unwrap_or_default();
        let words = Words { name: name.as_str(), container: self.container, project, service };
        let filled = host_template::fill(text, &words).or_else(|reason| {
            self.fault("http-host", format!("invalid {}={}: {reason}", self.label("http-host"), names::quoted(text)))
        })?;
        names::hostname(&filled).map(Some).or_else(|error| self.fault("http-host", error.to_string()))
    }

    /// The service's own label, else the container's.
    fn yes_or_no(&self, key: &str) -> Result<bool, LabelFault> {
        let own = self.get(key);
        let whole = self.labels.get(&format!("{PREFIX}{key}")).map(|value| value.trim()).unwrap_or_default();
        match if own.is_empty() { whole } else { own }.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            other => {
                let label = self.label(key);
                self.fault(key, format!("invalid {label}={}: write true or false", names::quoted(other)))
            }
        }
    }
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
