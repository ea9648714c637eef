//! How a service is named in an environment: `checkout.postgres` is `CHECKOUT_POSTGRES_…`. Pure.

/// What every variable of a service begins with, in letters, digits and underscores, so that every shell can read it.
pub(super) fn prefix(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let text: String = name.chars().map(word).collect();
    // A variable begins with no digit.
    if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text }
}

/// `<NAME>_ADDR`, the variable that has the whole address.
pub(super) fn address(name: &str) -> String {
    format!("{}_ADDR", prefix(name))
}

/// Every variable of a service at an endpoint (`host:port` or a URL), in order: `_ADDR`, `_HOST`, `_PORT`, and `_URL` when
/// it is one. With `host`, that name stands in the place of the endpoint's own.
pub(super) fn all(name: &str, endpoint: &str, host: Option<&str>) -> Vec<(String, String)> {
    let prefix = prefix(name);
    let (scheme, rest) = match endpoint.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest.trim_end_matches('/')),
        None => (None, endpoint),
    };
    let (own, port) = rest.rsplit_once(':').unwrap_or((rest, ""));
    let host = host.unwrap_or(own);
    let at = if port.is_empty() { host.to_owned() } else { format!("{host}:{port}") };
    let whole = scheme.map_or_else(|| at.clone(), |scheme| format!("{scheme}://{at}"));
    let mut all = vec![
        (format!("{prefix}_ADDR"), whole.clone()),
        (format!("{prefix}_HOST"), host.trim_matches(['[', ']']).to_owned()),
        (format!("{prefix}_PORT"), port.to_owned()),
    ];
    all.extend(scheme.map(|_| (format!("{prefix}_URL"), whole)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_variables_that_every_shell_can_read() {
        assert_eq!(address("checkout.postgres"), "CHECKOUT_POSTGRES_ADDR");
        assert_eq!(address("api-v2"), "API_V2_ADDR");
        assert_eq!(address("2fa"), "_2FA_ADDR");
    }

    #[test]
    fn an_endpoint_is_told_whole_and_in_parts() {
        let values = |endpoint, host| all("x", endpoint, host).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(values("127.0.0.1:15432", None), ["127.0.0.1:15432", "127.0.0.1", "15432"]);
        assert_eq!(values("[::1]:15432", None), ["[::1]:15432", "::1", "15432"]);
        let url = "http://web.localhost:8088";
        assert_eq!(values(url, None), [url, "web.localhost", "8088", url]);
        assert_eq!(
            values("127.0.0.1:9", Some("host.docker.internal")),
            ["host.docker.internal:9", "host.docker.internal", "9"]
        );
    }
}
