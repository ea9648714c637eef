//! Where an object API is: an origin, or a service of the directory reached through this host's own adapter.
use super::Routes;
use crate::store::http::{Origin, is_loopback};
use url::Url;

/// `storage.stado.url`, in sentences.
pub const STORAGE_URL: &str = "Stado storage URL";

/// `storage.stado.url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An origin.
    At(Origin),
    /// `stado://service/<name>?consumer=<consumer>`: found at each use.
    Service {
        /// Logical name.
        service: String,
        /// Consumer of the adapter.
        consumer: String,
    },
}

impl Address {
    /// Parses `storage.stado.url`, or another URL of the kind, called `what`.
    ///
    /// # Errors
    /// The sentence of §2.4 for anything that is neither an HTTPS origin nor HTTP on loopback.
    pub fn parse(what: &str, text: &str) -> Result<Self, String> {
        let refused = format!("{what} must be an HTTPS origin or authenticated HTTP loopback");
        let url = Url::parse(text).map_err(|e| format!("{refused}: {text:?}: {e}"))?;
        match url.scheme() {
            "stado" => service(&url)
                .ok_or_else(|| format!("{what} {text:?} must be stado://service/<name>?consumer=<consumer>")),
            "http" | "https" => origin(&url).map(Self::At).ok_or(refused),
            _ => Err(refused),
        }
    }

    /// The origin to ask now.
    pub(crate) fn origin(&self, routes: &dyn Routes) -> Result<Origin, String> {
        match self {
            Self::At(origin) => Ok(origin.clone()),
            Self::Service { service, consumer } => Ok(Origin::at(routes.adapter(service, consumer)?)),
        }
    }
}

fn service(url: &Url) -> Option<Address> {
    let name = url.path().strip_prefix('/')?;
    let consumer = url.query_pairs().find(|(key, _)| key == "consumer")?.1.into_owned();
    let whole = url.host_str() == Some("service") && !name.is_empty() && !name.contains('/') && !consumer.is_empty();
    whole.then(|| Address::Service { service: name.to_owned(), consumer })
}

fn origin(url: &Url) -> Option<Origin> {
    let bare = url.username().is_empty() && url.password().is_none() && matches!(url.path(), "" | "/");
    let bare = bare && url.query().is_none() && url.fragment().is_none();
    let origin = Origin::of(url)?;
    (bare && (origin.https || is_loopback(url))).then_some(origin)
}

#[cfg(test)]
mod tests {
    use super::super::NoRoutes;
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        Address::parse(STORAGE_URL, text)?.origin(&NoRoutes).map(|o| o.to_string())
    }

    #[test]
    fn an_origin_is_https_or_loopback_and_nothing_else() {
        assert_eq!(shown("http://127.0.0.1:18776").unwrap(), "http://127.0.0.1:18776");
        assert_eq!(shown("http://localhost:1/").unwrap(), "http://localhost:1");
        assert_eq!(shown("http://[::1]:1").unwrap(), "http://[::1]:1");
        assert_eq!(shown("https://store.example").unwrap(), "https://store.example:443");
        for bad in [
            "http://store.example",
            "http://192.0.2.1:80",
            "ftp://127.0.0.1",
            "https://u:p@store.example",
            "https://x/path",
            "https://x/?q",
            "https://x/#f",
        ] {
            let refused = "Stado storage URL must be an HTTPS origin or authenticated HTTP loopback";
            assert_eq!(shown(bad).unwrap_err(), refused, "{bad}");
        }
        assert!(shown("18776").unwrap_err().starts_with("Stado storage URL must be an HTTPS origin"));
        let other = Address::parse("Skarbiec URL", "http://vault.example").unwrap_err();
        assert_eq!(other, "Skarbiec URL must be an HTTPS origin or authenticated HTTP loopback");
    }

    #[test]
    fn a_service_is_found_at_each_use() {
        let address = Address::parse(STORAGE_URL, "stado://service/stado-object-api?consumer=agent").unwrap();
        assert_eq!(address, Address::Service { service: "stado-object-api".into(), consumer: "agent".into() });
        // Fleet contract §8, failure 28: nothing published yet is a sentence, not an address without a base.
        assert!(address.origin(&NoRoutes).unwrap_err().contains("stado resolver status"));
        for bad in [
            "stado://service/x",
            "stado://service/?consumer=a",
            "stado://other/x?consumer=a",
            "stado://service/a/b?consumer=c",
        ] {
            assert!(Address::parse(STORAGE_URL, bad).is_err(), "{bad}");
        }
    }
}
