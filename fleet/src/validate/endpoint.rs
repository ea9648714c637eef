//! Endpoint URLs: an origin on the loopback of the host that owns it.
use super::at::{At, Findings};
use super::read::{Object, required_text, some};
use crate::name::{Endpoint, LoopbackAddr, LoopbackHost, NameError, Scheme};
use std::net::IpAddr;
use url::{Host, Url};

/// Reads one entry of `endpoints` or `standby`.
pub(super) fn read(entry: &Object, at: At<'_>, out: &mut Findings) -> Option<Endpoint> {
    let text = required_text(entry, "url", at, out);
    let endpoint = text.and_then(|text| parse(text).map_err(|sentence| out.add(at.key("url"), sentence)).ok());
    if let Some(base) = some(entry, "base_path") {
        let clean = |b: &str| b.starts_with('/') && !b.ends_with('/') && !b.contains(['?', '#']);
        if !base.as_str().is_some_and(clean) {
            out.add(at.key("base_path"), "must be an absolute path with no trailing slash");
        }
    }
    endpoint
}

/// `http://<loopback>:<port>` or `tcp://<loopback>:<port>` (design, choices); the error is the contract's sentence.
pub(super) fn parse(text: &str) -> Result<Endpoint, String> {
    let url = Url::parse(text).map_err(|e| format!("invalid URL: {e}"))?;
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "tcp" => Scheme::Tcp,
        _ => return Err("must use host-relative loopback HTTP".into()),
    };
    let credentials = !url.username().is_empty() || url.password().is_some();
    if credentials || url.query().is_some() || url.fragment().is_some() {
        return Err("must not contain credentials, query, or fragment".into());
    }
    if !matches!(url.path(), "" | "/") {
        return Err("must be an origin without a path".into());
    }
    let host = url.host().and_then(|host| loopback(&host));
    let port = url.port_or_known_default().filter(|port| *port != 0);
    match (host, port) {
        (Some(host), Some(port)) => Ok(Endpoint { scheme, addr: LoopbackAddr { host, port } }),
        _ => Err("must use host-relative loopback with a known port".into()),
    }
}

fn loopback(host: &Host<&str>) -> Option<LoopbackHost> {
    let ip = match host {
        Host::Domain(name) if name.eq_ignore_ascii_case("localhost") => return Some(LoopbackHost::Localhost),
        // Only the hosts of schemes that the URL standard knows are read as addresses; those of `tcp` come as they stand.
        Host::Domain(name) => name.parse::<IpAddr>().ok()?,
        Host::Ipv4(ip) => IpAddr::V4(*ip),
        Host::Ipv6(ip) => IpAddr::V6(*ip),
    };
    ip.is_loopback().then_some(LoopbackHost::Ip(ip))
}

impl std::str::FromStr for Endpoint {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        parse(text).map_err(NameError)
    }
}
