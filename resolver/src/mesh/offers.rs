//! What the fleet's side asks of the names that this host publishes.
use super::Mesh;
use super::record::Kind;
use std::net::SocketAddr;

/// A name as other hosts would reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Name.
    pub name: String,
    /// The port of a tcp service.
    pub frontend: Option<SocketAddr>,
    /// The hostname of an http service.
    pub hostname: Option<String>,
    /// What it speaks.
    pub app_protocol: String,
    /// Why it has no backend, and since when; `None` while it has one.
    pub absent: Option<(String, jiff::Timestamp)>,
    /// Whether its producer asks for it to be offered.
    pub asks: bool,
}

impl Mesh {
    /// The names that `wanted` takes; it is told whether a name's producer asks for it.
    pub fn offers(&self, wanted: impl Fn(&str, bool) -> bool) -> Vec<Offer> {
        let core = self.read();
        let all = core.registry.iter().filter(|(name, record)| wanted(name.as_str(), record.publish));
        all.map(|(name, record)| Offer {
            name: name.to_string(),
            frontend: record.frontend.filter(|_| record.kind == Kind::Tcp),
            hostname: record.hostname.clone().filter(|_| record.kind == Kind::Http),
            app_protocol: record.app_protocol.clone(),
            absent: record.backend.is_none().then(|| (record.reason.to_string(), record.since.wall)),
            asks: record.publish,
        })
        .collect()
    }
}
