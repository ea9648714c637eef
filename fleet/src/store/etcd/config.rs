//! `etcd://host:port,host:port/prefix`, and `etcds://…` over TLS.
use crate::store::http::{Origin, Tls, is_loopback};
use crate::store::location;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

const OPTIONS: [&str; 2] = ["timeout", "plaintext"];
/// Where etcd listens when nobody says.
const PORT: u16 = 2379;
/// Below which the registry is when nobody says.
const PREFIX: &str = "stado";

/// A cluster, and the key in it that is the registry.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    pub(super) members: Vec<Origin>,
    pub(super) key: String,
    /// For one read or write, whoever answers it.
    pub(super) timeout: Duration,
    pub(super) tls: Tls,
    /// Whether what is said is seen by nobody else.
    pub(super) private: bool,
}

impl EtcdConfig {
    /// Reads a store's URL. `ca_file` holds PEM roots beside those of the system; `certificate` is one of this host with its
    /// key.
    ///
    /// # Errors
    /// A sentence that quotes the URL and says what is wrong with it.
    pub fn parse(
        text: &str,
        ca_file: Option<PathBuf>,
        certificate: Option<(PathBuf, PathBuf)>,
    ) -> Result<Self, String> {
        let tls = Tls::new("storage.etcd", ca_file);
        let tls = match certificate {
            Some((certificate, key)) => tls.showing(certificate, key),
            None => tls,
        };
        Self::read(text, tls).map_err(|why| {
            // What may be a secret is not repeated.
            let shown = if text.contains('@') { "etcd://…" } else { text };
            format!("the store URL {shown:?} cannot be used: {why}")
        })
    }

    fn read(text: &str, tls: Tls) -> Result<Self, String> {
        let plain = text.strip_prefix("etcd://").map(|rest| ("http", rest));
        let (scheme, rest) = plain
            .or_else(|| text.strip_prefix("etcds://").map(|rest| ("https", rest)))
            .ok_or("it must be etcd://host:port,host:port/prefix, or etcds:// over TLS")?;
        let parts = location::split(rest, &OPTIONS)?;
        let urls = parts.place.split(',').map(|place| member(scheme, place)).collect::<Result<Vec<_>, _>>()?;
        let private = scheme == "https" || urls.iter().all(is_loopback);
        if !private && !parts.plaintext()? {
            return Err(
                "it is not over TLS, so whoever is on the way may read and change the registry; use etcds://, or say \
                        plaintext=allow as well"
                    .into(),
            );
        }
        let prefix = if parts.prefix.is_empty() { PREFIX } else { parts.prefix };
        let key = format!("/{prefix}/{}", crate::store::local::REGISTRY);
        let members = urls.iter().filter_map(Origin::of).collect();
        Ok(Self { members, key, timeout: parts.timeout()?, tls, private })
    }

    /// As people see it: `etcd:/stado/registry.json`.
    pub(super) fn location(&self) -> String {
        format!("etcd:{}", self.key)
    }
}

fn member(scheme: &str, place: &str) -> Result<Url, String> {
    let refused = || format!("{place:?} is no address of a member; write it as host:port");
    let mut url = Url::parse(&format!("{scheme}://{place}/")).map_err(|_| refused())?;
    if place.is_empty() || url.path() != "/" || url.host_str().is_none_or(str::is_empty) {
        return Err(refused());
    }
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        url.set_port(Some(PORT)).map_err(|()| refused())?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EtcdConfig, String> {
        EtcdConfig::parse(text, None, None)
    }

    #[test]
    fn a_cluster_is_named_by_a_url() {
        let config = read("etcd://127.0.0.1:2379,[::1]:22379,localhost/teams/a?timeout=3s").unwrap();
        let members: Vec<String> = config.members.iter().map(ToString::to_string).collect();
        assert_eq!(members, ["http://127.0.0.1:2379", "http://[::1]:22379", "http://localhost:2379"]);
        assert_eq!((config.key.as_str(), config.timeout), ("/teams/a/registry.json", Duration::from_secs(3)));
        assert!(config.private);
        let tls = read("etcds://one.example,two.example:443").unwrap();
        let members: Vec<String> = tls.members.iter().map(ToString::to_string).collect();
        assert_eq!(members, ["https://one.example:2379", "https://two.example:443"]);
        assert_eq!(tls.location(), "etcd:/stado/registry.json");
        assert!(!read("etcd://10.0.0.1:2379?plaintext=allow").unwrap().private);
    }

    #[test]
    fn what_cannot_be_a_cluster_is_said_and_no_secret_is_repeated() {
        for (bad, why) in [
            ("http://127.0.0.1:2379", "it must be etcd://"),
            ("etcd://", "is no address of a member"),
            ("etcd://127.0.0.1:2379,,", "is no address of a member"),
            ("etcd://127.0.0.1:99999", "is no address of a member"),
            ("etcd://10.0.0.1:2379", "it is not over TLS"),
            ("etcd://127.0.0.1:2379?colour=red", "no option"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
        let error = read("etcd://root:hidden@127.0.0.1:2379").unwrap_err();
        assert!(error.contains("credentials do not belong") && !error.contains("hidden"), "{error}");
    }
}
