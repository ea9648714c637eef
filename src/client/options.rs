//! What a program asks for when it registers.
use super::error::Error;
use stado_fleet::wire::{BackendAddr, RegisterRequest};
use std::path::PathBuf;
use std::time::Duration;

/// How the backend speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// A stable `host:port` of its own.
    #[default]
    Tcp,
    /// Reached by hostname through the HTTP router.
    Http,
}

/// What happens when the first registration fails for a reason that may pass (no daemon yet, the name still held).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstAttempt {
    /// The error is returned at once.
    #[default]
    Once,
    /// Tried again, 100 ms to 5 s apart, until it succeeds or this much time has passed; then the last error is returned.
    RetryFor(Duration),
    /// Tried again until it succeeds.
    RetryForever,
}

/// A registration: a name and the address that the program listens on, and what differs from the defaults.
///
/// ```
/// use stado::client::{FirstAttempt, RegistrationOptions};
/// let options = RegistrationOptions {
///     preferred_port: Some(15432),
///     first_attempt: FirstAttempt::RetryForever,
///     ..RegistrationOptions::new("checkout.postgres", "127.0.0.1:49382")
/// };
/// ```
#[derive(Debug, Clone, Default)]
pub struct RegistrationOptions {
    /// Service name (`mesh.md`, data model).
    pub name: String,
    /// Where the program listens: `host:port` on loopback.
    pub backend: String,
    /// TCP unless said.
    pub kind: Kind,
    /// Display hint (`postgres`, `grpc`, …).
    pub app_protocol: Option<String>,
    /// Hostname of an HTTP service; made of the name when absent (`checkout.api` → `checkout-api.localhost`).
    pub http_host: Option<String>,
    /// Stable port wished for; advice, not a claim.
    pub preferred_port: Option<u16>,
    /// Lease length in whole seconds, 3 s to 1 h; the daemon's own when absent.
    pub ttl: Option<Duration>,
    /// Registered by a person or a script for something else, rather than by the listening process itself.
    pub manual: bool,
    /// The daemon's socket; the default one when absent.
    pub socket: Option<PathBuf>,
    /// Whether a first registration that fails is tried again.
    pub first_attempt: FirstAttempt,
}

impl RegistrationOptions {
    /// The defaults for a name and a `host:port`.
    pub fn new(name: impl Into<String>, backend: impl Into<String>) -> Self {
        Self { name: name.into(), backend: backend.into(), ..Self::default() }
    }

    /// The request on the wire; refuses what can be seen to be wrong without the daemon.
    pub(crate) fn request(&self) -> Result<RegisterRequest, Error> {
        if self.name.is_empty() {
            return Err(Error::Invalid("Name is required".into()));
        }
        let kind = match self.kind {
            Kind::Tcp => "tcp",
            Kind::Http => "http",
        };
        Ok(RegisterRequest {
            name: self.name.clone(),
            kind: kind.into(),
            app_protocol: self.app_protocol.clone().unwrap_or_default(),
            source: if self.manual { "manual" } else { "process" }.into(),
            backend: backend(&self.backend)?,
            preferred_port: self.preferred_port.map_or(0, i64::from),
            ttl_seconds: self.ttl.map_or(0, whole_seconds),
            http_host: self.http_host.clone().unwrap_or_default(),
        })
    }
}

/// Rounded up, since zero would mean the daemon's default.
fn whole_seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX).saturating_add(i64::from(ttl.subsec_nanos() > 0))
}

fn backend(text: &str) -> Result<BackendAddr, Error> {
    if text.is_empty() {
        return Err(Error::Invalid("Backend is required".into()));
    }
    let bad = || Error::Invalid(format!("invalid Backend {text:?}"));
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or_else(bad)?,
        None if host.contains(':') => return Err(bad()),
        None => host,
    };
    if host.is_empty() {
        return Err(bad());
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(BackendAddr { host: host.into(), port: port.into() }),
        _ => Err(Error::Invalid("invalid Backend port".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, backend: &str) -> String {
        RegistrationOptions::new(name, backend).request().unwrap_err().to_string()
    }

    #[test]
    fn what_can_be_seen_to_be_wrong_is_refused_with_the_sentences_of_the_contract() {
        assert_eq!(refused("", "127.0.0.1:1"), "devmesh: Name is required");
        assert_eq!(refused("a", ""), "devmesh: Backend is required");
        for text in ["nope", "::1:80", "[::1:80", ":80"] {
            assert_eq!(refused("a", text), format!("devmesh: invalid Backend {text:?}"));
        }
        for text in ["127.0.0.1:0", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:"] {
            assert_eq!(refused("a", text), "devmesh: invalid Backend port");
        }
    }

    #[test]
    fn options_that_are_not_set_are_left_out_on_the_wire() {
        let request = RegistrationOptions::new("a.b", "[::1]:80").request().unwrap();
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"name":"a.b","kind":"tcp","source":"process","backend":{"host":"::1","port":80}}"#
        );
    }

    #[test]
    fn options_that_are_set_are_sent() {
        let options = RegistrationOptions {
            kind: Kind::Http,
            app_protocol: Some("h2c".into()),
            http_host: Some("a.localhost".into()),
            preferred_port: Some(70),
            ttl: Some(Duration::from_millis(9999)),
            manual: true,
            ..RegistrationOptions::new("a", "localhost:8080")
        };
        assert_eq!(
            serde_json::to_string(&options.request().unwrap()).unwrap(),
            r#"{"name":"a","kind":"http","app_protocol":"h2c","source":"manual","backend":{"host":"localhost","port":8080},"preferred_port":70,"ttl_seconds":10,"http_host":"a.localhost"}"#
        );
    }
}
