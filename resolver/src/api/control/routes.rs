//! The routes: one table. A new route is a line here, an arm in `handlers`, and an entry in `openapi.json`.
use hyper::Method;

/// A request that has a route. The text is the one variable segment, percent-decoded and otherwise as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    List,
    Resolve(String),
    Inspect(String),
    Connections(String),
    Forget(String),
    Pin(String),
    Rename(String),
    Expose(String),
    Conceal(String),
    Register,
    Heartbeat(String),
    Deregister(String),
    Refused,
    Certificates,
    Overview,
    Events,
    Metrics,
    OpenApi,
    HandOver,
}

impl Route {
    /// Whether it changes the mesh.
    pub(super) fn changes(&self) -> bool {
        matches!(
            self,
            Self::Forget(_)
                | Self::Pin(_)
                | Self::Rename(_)
                | Self::Expose(_)
                | Self::Conceal(_)
                | Self::Register
                | Self::Heartbeat(_)
                | Self::Deregister(_)
        )
    }
}

/// Why there is no route.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// No such path.
    Path,
    /// The path has other methods: the value of `Allow`.
    Method(String),
}

type Make = fn(String) -> Route;

/// Method, pattern, route. `{…}` is one segment that is not empty. `GET` serves `HEAD` too.
pub(super) const ROUTES: &[(&str, &str, Make)] = &[
    ("GET", "/v1/health", |_| Route::Health),
    ("GET", "/v1/services", |_| Route::List),
    ("GET", "/v1/services/{name}", Route::Resolve),
    ("DELETE", "/v1/services/{name}", Route::Forget),
    ("GET", "/v1/services/{name}/inspect", Route::Inspect),
    ("GET", "/v1/services/{name}/connections", Route::Connections),
    ("POST", "/v1/services/{name}/pin", Route::Pin),
    ("POST", "/v1/services/{name}/rename", Route::Rename),
    ("POST", "/v1/services/{name}/expose", Route::Expose),
    ("DELETE", "/v1/services/{name}/expose", Route::Conceal),
    ("POST", "/v1/registrations", |_| Route::Register),
    ("POST", "/v1/registrations/{id}/heartbeat", Route::Heartbeat),
    ("DELETE", "/v1/registrations/{id}", Route::Deregister),
    ("GET", "/v1/refused", |_| Route::Refused),
    ("GET", "/v1/certificates", |_| Route::Certificates),
    ("GET", "/v1/overview", |_| Route::Overview),
    ("GET", "/v1/events", |_| Route::Events),
    ("GET", "/v1/openapi.json", |_| Route::OpenApi),
    ("GET", "/metrics", |_| Route::Metrics),
    ("POST", super::door::HAND_OVER_PATH, |_| Route::HandOver),
];

/// Finds the route of a request.
pub(super) fn find(method: &Method, path: &str) -> Result<Route, Miss> {
    let mut allowed: Vec<&str> = Vec::new();
    for (served, pattern, make) in ROUTES {
        let Some(segment) = matches(pattern, path) else { continue };
        if method.as_str() == *served || (*served == "GET" && method == Method::HEAD) {
            return Ok(make(segment));
        }
        allowed.push(served);
        if *served == "GET" {
            allowed.push("HEAD");
        }
    }
    if allowed.is_empty() {
        return Err(Miss::Path);
    }
    allowed.sort_unstable();
    Err(Miss::Method(allowed.join(", ")))
}

/// The variable segment of `path` if it has the shape of `pattern`; empty text when there is none.
fn matches(pattern: &str, path: &str) -> Option<String> {
    let mut segment = String::new();
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(segment),
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => segment = decoded(given)?,
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

/// Percent-decoding; `None` when an escape is malformed.
pub(super) fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_whole_and_segments_decoded() {
        assert_eq!(find(&Method::GET, "/v1/services/a%2Fb"), Ok(Route::Resolve("a/b".into())));
        assert_eq!(find(&Method::HEAD, "/v1/services/x/inspect"), Ok(Route::Inspect("x".into())));
        for path in
            ["/", "/v1", "/v1/services/", "/v1/services/a/", "/v1/services/a/b", "/v1/health/", "/v1/services/%zz"]
        {
            assert_eq!(find(&Method::GET, path), Err(Miss::Path), "{path}");
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        let allow = |method: Method, path: &str| match find(&method, path) {
            Err(Miss::Method(allow)) => allow,
            other => panic!("{other:?}"),
        };
        assert_eq!(allow(Method::POST, "/v1/health"), "GET, HEAD");
        assert_eq!(allow(Method::GET, "/v1/registrations"), "POST");
        assert_eq!(allow(Method::GET, "/v1/registrations/x"), "DELETE");
        assert_eq!(allow(Method::PUT, "/v1/services/x"), "DELETE, GET, HEAD");
    }
}
