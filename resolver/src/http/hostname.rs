//! Hostnames: which are ours, and the one that a service gets when it names none (proxy rules 10 and 21).

/// Under it this daemon answers by itself: the index of what it serves.
pub const OWN: &str = "stado.localhost";

/// Where names without a hostname of their own are put. Browsers and `curl` take every name under it for this machine.
const BASE: &str = "localhost";

/// Longest label of a hostname, in bytes.
pub const LABEL_MAX: usize = 63;

/// Whether `host` (lower case, without port or trailing dot) is [`OWN`] or under it, as itself or as a wildcard.
pub fn is_reserved(host: &str) -> bool {
    host.strip_suffix(OWN).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// `checkout.api` → `checkout-api.localhost`; the sentence says why there is none.
pub fn of_service(name: &str) -> Result<String, String> {
    match slug(name) {
        slug if slug.is_empty() => Err(format!("service {name} has no letter or digit to make a hostname from")),
        slug if slug.len() > LABEL_MAX => Err(format!(
            "http_host is required: the name of service {name} is longer than the {LABEL_MAX} characters that a hostname \
             can be made from"
        )),
        slug => Ok(format!("{slug}.{BASE}")),
    }
}

/// One label of a hostname: lower case, every run of other characters one hyphen, none at the ends.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// The scheme and authority of a hostname on a port; the scheme's usual port is not written.
pub fn url(scheme: &str, host: &str, port: u16) -> String {
    match (scheme, port) {
        ("http", 80) | ("https", 443) => format!("{scheme}://{host}"),
        _ => format!("{scheme}://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_service_gets_one_label_of_its_name() {
        assert_eq!(of_service("checkout.api").unwrap(), "checkout-api.localhost");
        assert_eq!(of_service("a--b..c-").unwrap(), "a-b-c.localhost");
        assert!(of_service("-").is_err());
        assert!(of_service(&"a".repeat(64)).unwrap_err().starts_with("http_host is required: "));
    }

    #[test]
    fn our_own_name_and_all_under_it_are_reserved() {
        for ours in ["stado.localhost", "a.stado.localhost", "a.b.stado.localhost", "*.stado.localhost"] {
            assert!(is_reserved(ours), "{ours}");
        }
        for free in ["mystado.localhost", "stado.localhost.test", "localhost", "*.localhost", ""] {
            assert!(!is_reserved(free), "{free}");
        }
    }

    #[test]
    fn urls_name_the_port_only_when_it_is_not_the_usual_one() {
        assert_eq!(url("http", "a.test", 8088), "http://a.test:8088");
        assert_eq!(url("http", "a.test", 80), "http://a.test");
        assert_eq!(url("https", "a.test", 443), "https://a.test");
        assert_eq!(url("https", "a.test", 80), "https://a.test:80");
    }

    proptest! {
        #[test]
        fn a_made_hostname_is_always_one_label_under_localhost(name in ".{0,80}") {
            if let Ok(host) = of_service(&name) {
                let label = host.strip_suffix(".localhost").unwrap();
                prop_assert!((1..=LABEL_MAX).contains(&label.len()));
                prop_assert!(label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
                prop_assert!(!label.starts_with('-') && !label.ends_with('-'));
            }
        }
    }
}
