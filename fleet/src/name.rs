//! Parsed names, addresses and numbers by role. A value of these types has been checked.
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Why a text is not the name or address it was read as. `Display` is the sentence of the contracts where they fix one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub String);

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(std::sync::Arc<str>);
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str { &self.0 }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str { &self.0 }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str { &self.0 }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

text_newtype!(
    /// A mesh service name: `^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$`, at most 120 bytes (`mesh.md`, data model).
    ServiceName
);
text_newtype!(
    /// A registry target: `^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$` (fleet contract §1.2).
    TargetName
);
text_newtype!(
    /// A service of the directory: the same grammar as a target (fleet contract §1.6).
    LogicalName
);
text_newtype!(
    /// A consumer identity of the directory: non-empty text without control characters.
    ConsumerId
);
text_newtype!(
    /// Opaque token of the stored bytes; what compare-and-swap compares (design, words).
    StoreVersion
);

impl FromStr for ServiceName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError("service name is empty".into()));
        }
        if text.len() > 120 {
            return Err(NameError("service name exceeds 120 characters".into()));
        }
        let label = |l: &str| {
            l.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !text.split('.').all(label) {
            return Err(NameError(format!(
                "service name {text:?} must match ^[a-z0-9][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)*$"
            )));
        }
        Ok(Self(text.into()))
    }
}

/// Whether a text is a lowercase identifier without empty edges, as targets and directory services are.
pub fn is_identifier(text: &str) -> bool {
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge) && bytes.last().is_some_and(edge) && bytes.iter().copied().all(inner)
}

impl FromStr for TargetName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_identifier(text) {
            Ok(Self(text.into()))
        } else {
            Err(NameError("must be a lowercase target identifier".into()))
        }
    }
}

impl FromStr for LogicalName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_identifier(text) {
            Ok(Self(text.into()))
        } else {
            Err(NameError("must be a lowercase identifier without empty edges".into()))
        }
    }
}

impl FromStr for ConsumerId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(NameError("consumer identity must not be empty".into()));
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for StoreVersion {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() { Err(NameError("store version is empty".into())) } else { Ok(Self(text.into())) }
    }
}

/// `service_directory.generation`: a positive integer that only ever rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How the bytes behind an endpoint are meant; carried into markers, `connect` and `gateway_url`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http://`
    Http,
    /// `tcp://`
    Tcp,
}

impl Scheme {
    /// `http` or `tcp`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp => "tcp",
        }
    }
}

/// A loopback host as someone wrote it: a literal, or the word `localhost` (dialled on both families, proxy rule 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopbackHost {
    /// The word `localhost`.
    Localhost,
    /// A loopback literal.
    Ip(IpAddr),
}

/// A loopback address: host and nonzero port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoopbackAddr {
    /// Host as written.
    pub host: LoopbackHost,
    /// Port, 1–65535.
    pub port: u16,
}

impl LoopbackAddr {
    /// The socket addresses to dial, in order; both literals for `localhost`.
    pub fn candidates(&self) -> Vec<SocketAddr> {
        match self.host {
            LoopbackHost::Ip(ip) => vec![SocketAddr::new(ip, self.port)],
            LoopbackHost::Localhost => vec![
                SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), self.port),
                SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), self.port),
            ],
        }
    }
}

impl fmt::Display for LoopbackAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            LoopbackHost::Localhost => write!(f, "localhost:{}", self.port),
            LoopbackHost::Ip(ip) => SocketAddr::new(ip, self.port).fmt(f),
        }
    }
}

impl FromStr for LoopbackAddr {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let bad = || NameError(format!("{text:?} is not a loopback host:port"));
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port: u16 = port.parse().map_err(|_| bad())?;
        if port == 0 {
            return Err(bad());
        }
        let host = if host.eq_ignore_ascii_case("localhost") {
            LoopbackHost::Localhost
        } else {
            let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
            let ip: IpAddr = inner.unwrap_or(host).parse().map_err(|_| bad())?;
            // Without brackets the last group of an IPv6 literal would pass as the port.
            if !ip.is_loopback() || ip.is_ipv6() != inner.is_some() {
                return Err(bad());
            }
            LoopbackHost::Ip(ip)
        };
        Ok(Self { host, port })
    }
}

/// An endpoint of the directory: `http://<loopback>:<port>` or `tcp://<loopback>:<port>` (design, choices).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Scheme.
    pub scheme: Scheme,
    /// Address on the host that owns the endpoint.
    pub addr: LoopbackAddr,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.addr)
    }
}

/// `[user@]host[:port]` of a connection path; IPv6 in brackets (fleet contract §1.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshDestination {
    /// Login name, when written.
    pub user: Option<String>,
    /// Host name or literal without brackets.
    pub host: String,
    /// Port, when written; 22 otherwise.
    pub port: Option<u16>,
}

impl FromStr for SshDestination {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let missing = || NameError("must include a host".into());
        let (user, rest) = match text.trim().rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()).filter(|u| !u.is_empty()), rest),
            None => (None, text.trim()),
        };
        let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
            let (host, tail) = inner.split_once(']').ok_or_else(missing)?;
            match tail.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if tail.is_empty() => (host, None),
                None => return Err(missing()),
            }
        } else if rest.matches(':').count() == 1 {
            rest.split_once(':').map_or((rest, None), |(h, p)| (h, Some(p)))
        } else {
            (rest, None)
        };
        let strange = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | '[' | ']');
        if host.is_empty() || host.contains(strange) || host.starts_with('-') {
            return Err(missing());
        }
        if user.as_deref().is_some_and(|u| u.contains(|c: char| c.is_whitespace() || c.is_control())) {
            return Err(NameError("has a login name with a space in it".into()));
        }
        let port = match port {
            None => None,
            Some(p) => Some(
                p.parse::<u16>()
                    .ok()
                    .filter(|p| *p != 0)
                    .ok_or_else(|| NameError(format!("has the invalid port {p:?}")))?,
            ),
        };
        Ok(Self { user, host: host.to_owned(), port })
    }
}

impl fmt::Display for SshDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?
        } else {
            f.write_str(&self.host)?
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        Ok(())
    }
}

/// A declared way to reach a target over SSH; tried in order (design, words). The first one of a target is `primary`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectionPath {
    /// `primary`, or the name of a fallback.
    pub name: String,
    /// Where it leads.
    pub destination: SshDestination,
}

#[cfg(test)]
mod tests;
