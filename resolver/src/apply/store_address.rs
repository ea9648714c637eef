//! The address that `storage.stado.url` names, and whether an adapter claims it (fleet contract §4.2). Pure.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The loopback address of the object API that this host's registry is configured at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAddress {
    url: String,
    hosts: Vec<IpAddr>,
    port: u16,
}

impl StoreAddress {
    /// Reads `storage.stado.url`. `None` when it names no loopback address: no adapter can contradict it then.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let default_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = split_port(authority, default_port)?;
        Some(Self { url: url.trim().to_owned(), hosts: loopback(host)?, port })
    }

    /// Whether a listener on `bind` would be the store's own address. `127.0.0.1` and `::1` of one port count as one
    /// address, because an adapter takes both halves.
    pub fn is(&self, bind: SocketAddr) -> bool {
        let pair = |ip: IpAddr| ip == IpAddr::V4(Ipv4Addr::LOCALHOST) || ip == IpAddr::V6(Ipv6Addr::LOCALHOST);
        self.port == bind.port() && self.hosts.iter().any(|host| *host == bind.ip() || (pair(*host) && pair(bind.ip())))
    }

    /// The reason that leaves exactly the contradicting adapter unserved.
    pub fn contradiction(&self, service: &str, bind: SocketAddr) -> String {
        format!(
            "this resolver is declared to serve {bind} for service \"{service}\", and the registry it must read first \
             is configured at storage.stado.url = {}. One of the two has to move: either place the object API \
             somewhere this resolver does not serve, or drop that adapter from the target's service_resolver policy. \
             Retrying cannot resolve it.",
            self.url
        )
    }
}

fn split_port(authority: &str, default_port: u16) -> Option<(&str, u16)> {
    if let Some(inner) = authority.strip_prefix('[') {
        let (host, tail) = inner.split_once(']')?;
        return match tail.strip_prefix(':') {
            Some(port) => Some((host, port.parse().ok()?)),
            None => Some((host, default_port)),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host, port.parse().ok()?)),
        None => Some((authority, default_port)),
    }
}

fn loopback(host: &str) -> Option<Vec<IpAddr>> {
    if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    let ip: IpAddr = host.parse().ok()?;
    ip.is_loopback().then(|| vec![ip])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_loopback_address_is_recognised_however_it_is_written() {
        for url in
            ["http://127.0.0.1:18776", "http://localhost:18776/", "http://[::1]:18776/base?x", "HTTP://LocalHost:18776"]
        {
            let store = StoreAddress::parse(url).unwrap();
            assert!(store.is("127.0.0.1:18776".parse().unwrap()), "{url}");
            assert!(store.is("[::1]:18776".parse().unwrap()), "{url}");
            assert!(!store.is("127.0.0.1:18777".parse().unwrap()), "{url}");
            assert!(!store.is("127.0.0.2:18776".parse().unwrap()), "{url}");
        }
        let other = StoreAddress::parse("http://127.0.0.2:80").unwrap();
        assert!(other.is("127.0.0.2:80".parse().unwrap()));
        assert!(!other.is("127.0.0.1:80".parse().unwrap()));
        assert!(StoreAddress::parse("https://127.0.0.1").unwrap().is("127.0.0.1:443".parse().unwrap()));
    }

    #[test]
    fn addresses_of_other_machines_contradict_nothing() {
        for url in [
            "https://store.example:18776",
            "http://192.0.2.1:1",
            "stado://service/x?consumer=y",
            "",
            "http://",
            "http://127.0.0.1:x",
        ] {
            assert_eq!(StoreAddress::parse(url), None, "{url}");
        }
    }

    #[test]
    fn the_reason_names_both_sides() {
        let store = StoreAddress::parse("http://127.0.0.1:18776").unwrap();
        let reason = store.contradiction("stado-object-api", "127.0.0.1:18776".parse().unwrap());
        assert!(reason.starts_with("this resolver is declared to serve 127.0.0.1:18776 for service \"stado-object-api\", and the registry it must read first is configured at storage.stado.url = http://127.0.0.1:18776"), "{reason}");
    }
}
