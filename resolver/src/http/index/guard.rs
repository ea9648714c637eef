//! Who may read the index: a person's browser that went there, and programs of this machine; never another site's page.
use super::super::own::{OwnRequest, OwnResponse};
use super::super::page::Form;
use super::full;

/// The answer for a request that is not to be served.
pub(super) fn refuse(request: &OwnRequest) -> Option<OwnResponse> {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        let text = "405 Method Not Allowed\n\nnothing is changed here; stado service has the verbs\n";
        let mut refused = full(405, Form::Text.content_type(), text.into());
        refused.headers.push(("Allow", "GET, HEAD".to_owned()));
        return Some(refused);
    }
    let foreign = foreign_origin(request) || embedded(request);
    foreign.then(|| {
        let text = "403 Forbidden\n\nonly for its own page and for programs of this machine\n";
        full(403, Form::Text.content_type(), text.into())
    })
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
