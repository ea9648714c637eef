//! Where a server is.
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use url::{Host, Url};

/// Scheme, host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub(crate) https: bool,
    /// As in the URL; IPv6 in brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// The origin of a URL that names a host, whatever else it says.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let https = url.scheme() == "https";
        Some(Self { https, host: url.host_str()?.to_owned(), port: url.port_or_known_default()? })
    }

    /// A listener of this machine, as an adapter is.
    pub(crate) fn at(addr: SocketAddr) -> Self {
        let ip = addr.ip();
        let host = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        Self { https: false, host, port: addr.port() }
    }

    /// What is dialled.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The loopback socket that it names, where it names one.
    pub(crate) fn socket(&self) -> Option<SocketAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let ip = if host == "localhost" { Ok(Ipv4Addr::LOCALHOST.into()) } else { host.parse() };
        ip.ok().map(|ip: IpAddr| SocketAddr::new(ip, self.port))
    }
}

/// Whether a URL names this machine: what goes there is seen by nobody on the way.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", if self.https { "https" } else { "http" }, self.authority())
    }
}
