//! Where an engine listens, as `DOCKER_HOST` writes it.
use stado_fleet::name::SshDestination;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `unix:///path`.
    Unix(PathBuf),
    /// `tcp://host:port`.
    Tcp {
        /// Host, without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// `ssh://[user@]host[:port]`: `docker system dial-stdio` there.
    Ssh(SshDestination),
}

impl Endpoint {
    /// Whether what it publishes on loopback is on *this* machine's loopback.
    pub fn is_here(&self) -> bool {
        let local = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => local(host),
            Self::Ssh(destination) => local(&destination.host),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Ssh(destination) => write!(f, "ssh://{destination}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or("write it as unix:///path, tcp://host:port or ssh://host")?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "unix" => Err("the path must be absolute".into()),
            "tcp" | "http" => tcp(rest.trim_end_matches('/')),
            "ssh" => rest.trim_end_matches('/').parse().map(Self::Ssh).map_err(|error| error.to_string()),
            other => Err(format!("{other}:// is not served: use unix, tcp or ssh")),
        }
    }
}

fn tcp(rest: &str) -> Result<Endpoint, String> {
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains('/') {
        return Err("write it as tcp://host:port".into());
    }
    let port = port.map_or(Ok(2375), |port| port.parse().map_err(|_| format!("{port:?} is not a port")))?;
    if port == 2376 {
        return Err("port 2376 speaks TLS, which is not served: use ssh:// or a local socket".into());
    }
    Ok(Endpoint::Tcp { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<Endpoint>().map(|endpoint| endpoint.to_string())
    }

    #[test]
    fn docker_host_is_read_as_docker_writes_it() {
        assert_eq!(read("unix:///var/run/docker.sock").unwrap(), "unix:///var/run/docker.sock");
        assert_eq!(read("tcp://localhost").unwrap(), "tcp://localhost:2375");
        assert_eq!(read("tcp://[::1]:2375/").unwrap(), "tcp://[::1]:2375");
        assert_eq!(read("ssh://me@box:2222").unwrap(), "ssh://me@box:2222");
        for wrong in
            ["", "/var/run/docker.sock", "unix://x", "npipe:////./pipe/x", "tcp://", "tcp://a:x", "tcp://a:2376"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_engine_elsewhere_publishes_elsewhere() {
        let here = |text: &str| text.parse::<Endpoint>().unwrap().is_here();
        assert!(here("unix:///x") && here("tcp://127.0.0.1:2375") && here("ssh://localhost"));
        assert!(!here("tcp://10.0.0.5:2375") && !here("ssh://box"));
    }
}
