//! Where the router listens at this moment: what the URLs of http services are made from, so that none names a port that is
//! not held (proxy rule 1).
use super::hostname;
use stado_fleet::wire::CertificateList;
use std::fmt;
use std::sync::Arc;

/// Whether the certificates that are loaded cover a hostname.
pub type CoversHost = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What certificates the router has; it looks at their files, and blocks meanwhile.
pub type TellCertificates = Arc<dyn Fn() -> CertificateList + Send + Sync>;

/// The router's listeners, or why there are none.
#[derive(Clone, Default)]
pub struct Listening {
    /// Port of plain HTTP, while it is held.
    pub http: Option<u16>,
    /// Port of HTTPS, while it is held.
    pub https: Option<u16>,
    /// What HTTPS is good for; `None` is everything.
    pub covers: Option<CoversHost>,
    /// What the certificates are.
    pub certificates: Option<TellCertificates>,
    /// Why http services have no URL, or not the one that was asked for.
    pub reason: Option<Arc<str>>,
}

impl Listening {
    /// No router, and why.
    pub fn none(reason: &str) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Whether URLs and reasons are those of `other`, as long as no certificate changes.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        let certified = self.covers.is_some() == other.covers.is_some();
        (self.http, self.https, &self.reason) == (other.http, other.https, &other.reason) && certified
    }

    /// The URL of `host`: over TLS when that is served and its certificate covers the name (mesh contract §1.5), else in
    /// clear, else there is none.
    pub fn url(&self, host: &str) -> Option<String> {
        let covered = || self.covers.as_ref().is_none_or(|covers| covers(host));
        match (self.https, self.http) {
            (Some(port), None) => Some(hostname::url("https", host, port)),
            (Some(port), Some(_)) if covered() => Some(hostname::url("https", host, port)),
            (_, Some(port)) => Some(hostname::url("http", host, port)),
            (None, None) => None,
        }
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { http, https, reason, .. } = self;
        f.debug_struct("Listening").field("http", http).field("https", https).field("reason", reason).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_listener_that_is_held_and_a_certificate_that_fits() {
        let both = Listening {
            http: Some(8088),
            https: Some(8443),
            covers: Some(Arc::new(|host| host.ends_with(".localhost"))),
            certificates: None,
            reason: None,
        };
        assert_eq!(both.url("a.localhost").as_deref(), Some("https://a.localhost:8443"));
        assert_eq!(both.url("a.test").as_deref(), Some("http://a.test:8088"));
        let tls = Listening { http: None, ..both.clone() };
        assert_eq!(tls.url("a.test").as_deref(), Some("https://a.test:8443"));
        assert_eq!(Listening { https: None, ..both }.url("a.localhost").as_deref(), Some("http://a.localhost:8088"));
        assert_eq!(Listening::none("off").url("a.test"), None);
    }
}
