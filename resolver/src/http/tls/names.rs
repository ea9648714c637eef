//! Which names a certificate is for.
use std::net::IpAddr;

/// The names of one certificate, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertNames {
    exact: Vec<Box<str>>,
    /// What follows `*.`.
    below: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
}

impl CertNames {
    pub(in crate::http) fn add_name(&mut self, name: &str) {
        let name = bare(name);
        match name.strip_prefix("*.") {
            Some(base) => self.below.push(base.into()),
            None => self.exact.push(name.into()),
        }
    }

    pub(super) fn add_address(&mut self, address: IpAddr) {
        self.addresses.push(address);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.below.is_empty() && self.addresses.is_empty()
    }

    /// Whether the certificate is for `host`: a name in any case with or without its trailing dot, or an address with or
    /// without brackets; no port. A wildcard stands for exactly one label.
    pub fn covers(&self, host: &str) -> bool {
        let host = bare(host);
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let wild = |base: &str| host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == base);
        self.names_exactly(&host) || self.below.iter().any(|base| wild(base))
    }

    /// As [`covers`](Self::covers), without wildcards.
    pub(super) fn names_exactly(&self, host: &str) -> bool {
        let host = bare(host);
        self.exact.iter().any(|name| **name == *host)
    }

    /// As a person writes them: `a.test`, `*.b.test`, `127.0.0.1`.
    pub fn list(&self) -> Vec<String> {
        let exact = self.exact.iter().map(ToString::to_string);
        let below = self.below.iter().map(|base| format!("*.{base}"));
        exact.chain(below).chain(self.addresses.iter().map(ToString::to_string)).collect()
    }
}

/// Lower case, without one trailing dot.
fn bare(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> CertNames {
        let mut all = CertNames::default();
        for name in names {
            match name.parse() {
                Ok(address) => all.add_address(address),
                Err(_) => all.add_name(name),
            }
        }
        all
    }

    #[test]
    fn a_wildcard_covers_exactly_one_label() {
        let names = of(&["*.dev.example.com"]);
        assert!(names.covers("checkout-api.dev.example.com") && names.covers("CHECKOUT-API.Dev.Example.Com."));
        assert!(!names.covers("checkout.api.dev.example.com") && !names.covers("dev.example.com"));
        assert!(!names.covers(".dev.example.com"));
    }

    #[test]
    fn names_and_addresses_are_not_each_other() {
        let names = of(&["a.test", "127.0.0.1", "::1"]);
        assert!(names.covers("a.test") && names.covers("127.0.0.1") && names.covers("[::1]") && names.covers("::1"));
        assert!(!names.covers("b.test") && !names.covers("127.0.0.2") && !names.covers(""));
        assert_eq!(names.list(), ["a.test", "127.0.0.1", "::1"]);
    }
}
