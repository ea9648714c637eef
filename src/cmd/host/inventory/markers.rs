//! The markers of a host on two axes that know nothing of each other: against its socket table, and against the directory
//! (fleet contract §5). Pure.
use super::sockets::{Listener, listens};
use serde::Serialize;
use stado_fleet::name::LoopbackAddr;

/// What the host could read of one marker file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// `brama.local`.
    pub(super) file: String,
    /// `read`, `refused_symlink`, `refused_not_regular`, `refused_unreadable`, as the host says it.
    pub(super) state: String,
    pub(super) content: Vec<u8>,
}

/// A marker against the socket table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Socket {
    /// Somebody listens there.
    Matched,
    /// Nobody does.
    Stale,
    /// The marker names no address.
    Unreadable,
    /// The table could not be read, or the address is not the host's loopback.
    Unknown,
}

/// A marker against the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Declared {
    /// It says what the directory declares for the host.
    Matched,
    /// It says something else.
    Disagrees,
    /// The directory declares no address of that service for the host.
    Undeclared,
}

/// One marker, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// Its service.
    pub(super) name: String,
    pub(super) file: String,
    /// `read`, `read_empty`, or why it was refused.
    pub(super) state: String,
    pub(super) url: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) socket: Socket,
    pub(super) declared_url: Option<String>,
    pub(super) declared: Declared,
}

/// Judges one. `table` is `None` when it could not be read; `declared_url` is what the directory declares for the host.
pub(super) fn judge(found: Found, table: Option<&[Listener]>, declared_url: Option<&str>) -> Marker {
    let url = url(&found);
    let at = url.as_deref().and_then(address);
    let state = match found.state.as_str() {
        "read" if found.content.trim_ascii().is_empty() => "read_empty".to_owned(),
        _ => found.state,
    };
    let name = found.file.strip_suffix(".local").or_else(|| found.file.strip_suffix(".url")).unwrap_or(&found.file);
    Marker {
        name: name.to_owned(),
        port: at.as_ref().map(|(_, port)| *port),
        socket: socket(at.as_ref(), table),
        declared: compare(url.as_deref(), declared_url),
        declared_url: declared_url.map(str::to_owned),
        file: found.file,
        state,
        url,
    }
}

fn url(found: &Found) -> Option<String> {
    let text = std::str::from_utf8(&found.content).ok()?.trim();
    (found.state == "read" && !text.is_empty()).then(|| text.to_owned())
}

fn socket(at: Option<&(String, u16)>, table: Option<&[Listener]>) -> Socket {
    match (at, table) {
        (None, _) => Socket::Unreadable,
        (Some((host, _)), _) if !is_loopback(host) => Socket::Unknown,
        (Some(_), None) => Socket::Unknown,
        (Some((_, port)), Some(table)) if listens(table, *port) => Socket::Matched,
        (Some(_), Some(_)) => Socket::Stale,
    }
}

/// Ports are compared when both sides are loopback, else the exact text.
fn compare(url: Option<&str>, declared: Option<&str>) -> Declared {
    let Some(declared) = declared else { return Declared::Undeclared };
    let Some(url) = url else { return Declared::Disagrees };
    let port = |url| address(url).filter(|(host, _)| is_loopback(host)).map(|(_, port)| port);
    let same = match (port(url), port(declared)) {
        (Some(here), Some(there)) => here == there,
        _ => url == declared,
    };
    if same { Declared::Matched } else { Declared::Disagrees }
}

/// Host and port of `scheme://host:port`, with or without a path.
fn address(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let sound = !scheme.is_empty() && !host.is_empty() && !host.contains(char::is_whitespace);
    Some((host.to_owned(), port.parse().ok()?)).filter(|(_, port)| sound && *port > 0)
}

fn is_loopback(host: &str) -> bool {
    format!("{host}:1").parse::<LoopbackAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(state: &str, content: &str, ports: Option<&[u16]>, declared: Option<&str>) -> Marker {
        let table: Option<Vec<Listener>> = ports.map(|ports| {
            ports.iter().map(|port| Listener { address: "127.0.0.1".into(), port: *port, pid: None }).collect()
        });
        let found = Found { file: "brama.local".into(), state: state.into(), content: content.as_bytes().to_vec() };
        judge(found, table.as_deref(), declared)
    }
    fn axes(state: &str, content: &str, ports: Option<&[u16]>, declared: Option<&str>) -> (Socket, Declared) {
        let marker = judged(state, content, ports, declared);
        (marker.socket, marker.declared)
    }
    const HERE: &str = "http://127.0.0.1:8080\n";

    #[test]
    fn the_two_axes_are_independent() {
        let declared = Some("http://127.0.0.1:8080");
        let other = Some("http://127.0.0.1:9");
        assert_eq!(axes("read", HERE, Some(&[8080]), declared), (Socket::Matched, Declared::Matched));
        assert_eq!(axes("read", HERE, Some(&[8080]), other), (Socket::Matched, Declared::Disagrees));
        assert_eq!(axes("read", HERE, Some(&[8080]), None), (Socket::Matched, Declared::Undeclared));
        assert_eq!(axes("read", HERE, Some(&[]), declared), (Socket::Stale, Declared::Matched));
        assert_eq!(axes("read", HERE, None, declared), (Socket::Unknown, Declared::Matched));
        assert_eq!(axes("refused_symlink", "", Some(&[8080]), declared), (Socket::Unreadable, Declared::Disagrees));
        assert_eq!(axes("refused_unreadable", "", None, None), (Socket::Unreadable, Declared::Undeclared));
    }

    #[test]
    fn ports_are_compared_on_loopback_and_text_elsewhere() {
        let declared = |content: &str, declared: &str| axes("read", content, None, Some(declared)).1;
        assert_eq!(declared("http://localhost:8080", "http://127.0.0.1:8080"), Declared::Matched);
        assert_eq!(declared("http://[::1]:8080/x", "tcp://127.0.0.1:8080"), Declared::Matched);
        assert_eq!(declared("http://192.0.2.1:8080", "http://127.0.0.1:8080"), Declared::Disagrees);
        assert_eq!(declared("http://192.0.2.1:80", "http://192.0.2.1:80"), Declared::Matched);
        assert_eq!(declared("not a url", "http://127.0.0.1:80"), Declared::Disagrees);
    }

    #[test]
    fn a_marker_without_an_address_is_unreadable_and_one_that_leads_elsewhere_is_not_judged() {
        let socket = |content: &str| axes("read", content, Some(&[80]), None).0;
        assert_eq!(socket("http://192.0.2.1:80"), Socket::Unknown);
        for none in ["", " \n", "http://127.0.0.1", "http://127.0.0.1:0", "127.0.0.1:80", "http://:80", "\u{1b}"] {
            assert_eq!(socket(none), Socket::Unreadable, "{none:?}");
        }
        assert_eq!(judged("read", " \n", None, None).state, "read_empty");
        assert_eq!(judged("read", HERE, None, None).state, "read");
        let marker = judged("read", HERE, None, None);
        assert_eq!(
            (marker.name.as_str(), marker.port, marker.url.as_deref()),
            ("brama", Some(8080), Some(HERE.trim()))
        );
    }
}
