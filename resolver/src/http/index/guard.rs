//! Who may read the index: a person's browser that went there, and programs of this machine; never another site's page.
use super::super::own::OwnRequest;
use super::super::page::Problem;

/// Why a request is not to be served.
pub(super) fn refuse(request: &OwnRequest) -> Option<Problem> {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Some(Problem::ReadOnly);
    }
    (foreign_origin(request) || embedded(request)).then_some(Problem::Foreign)
}

/// An `Origin` that is not this very host and port.
fn foreign_origin(request: &OwnRequest) -> bool {
    let mut origins = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("origin"));
    let own = |origin: &str| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(&request.authority))
    };
    origins.any(|(_, origin)| !own(origin))
}

/// A request that a page of another site made: browsers say so. Following a link there is no such request.
fn embedded(request: &OwnRequest) -> bool {
    let is = |name: &str, values: &[&str]| {
        request.header(name).is_some_and(|value| values.iter().any(|known| value.eq_ignore_ascii_case(known)))
    };
    let elsewhere = is("sec-fetch-site", &["cross-site", "same-site"]);
    let framed = is("sec-fetch-dest", &["iframe", "frame", "embed", "object"]);
    framed || (elsewhere && !is("sec-fetch-mode", &["navigate"]))
}
