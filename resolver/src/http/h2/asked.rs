//! What a stream asks for, as far as routing needs it (proxy rule 10).
use super::super::Problem;
use super::super::head::normalise;
use http::{Method, Request, Uri, Version, header};

/// A request that may be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Host and port as the client wrote them.
    pub(super) authority: String,
    /// The same in the form of the route table.
    pub(super) host: String,
}

/// Reads it; the problem is the answer.
pub(super) fn read<B>(request: &Request<B>) -> Result<Asked, Problem> {
    let bad = |why| Err(Problem::Bad { why });
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return bad("more than one Host");
    }
    let Ok(host) = host.map(|host| host.to_str()).transpose() else {
        return bad("the host has a character that no host has");
    };
    let authority = match (request.uri().authority().map(http::uri::Authority::as_str), host) {
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
            return bad("Host and :authority differ");
        }
        (Some(authority), _) => authority,
        (None, Some(host)) => host,
        (None, None) => return bad("no :authority and no Host"),
    };
    let mut host = String::with_capacity(authority.len());
    normalise(authority.as_bytes(), &mut host).map_err(|why| Problem::Bad { why })?;
    Ok(Asked { authority: authority.to_owned(), host })
}

/// The request as a backend gets it in HTTP/2: the same authority and path, byte for byte.
pub(super) fn onward<B>(request: &mut Request<B>, authority: &str) -> Result<(), Problem> {
    let bad = |_| Problem::Bad { why: "the path or the authority is malformed" };
    let mut uri = Uri::builder().scheme("http").authority(authority);
    uri = uri.path_and_query(request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str));
    *request.uri_mut() = uri.build().map_err(bad)?;
    *request.version_mut() = Version::HTTP_2;
    Ok(())
}

/// Whether sending it twice does what sending it once does (RFC 9110 §9.2.2).
pub(super) fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE | Method::TRACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(uri: &str, hosts: &[&str]) -> Result<(String, String), Problem> {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header("host", *host);
        }
        read(&request.body(()).unwrap()).map(|asked| (asked.authority, asked.host))
    }

    #[test]
    fn the_authority_decides_and_a_differing_host_is_refused() {
        let found = |authority: &str, host: &str| Ok((authority.to_owned(), host.to_owned()));
        assert_eq!(ask("https://A.test:8443/x", &[]), found("A.test:8443", "a.test"));
        assert_eq!(ask("https://a.test./x", &["A.test."]), found("a.test.", "a.test"));
        assert_eq!(ask("/x", &["a.test"]), found("a.test", "a.test"));
        for refused in [
            ask("https://a.test/", &["b.test"]),
            ask("/x", &["a", "a"]),
            ask("/x", &[]),
            ask("/x", &[""]),
            ask("/x", &["a:99999"]),
        ] {
            assert!(matches!(refused, Err(Problem::Bad { .. })), "{refused:?}");
        }
    }

    #[test]
    fn a_path_goes_on_byte_for_byte() {
        let mut request = Request::builder().uri("https://x/a/../b//c?x=1;y=%zz").body(()).unwrap();
        onward(&mut request, "A.test:8443").unwrap();
        assert_eq!(request.uri().to_string(), "http://A.test:8443/a/../b//c?x=1;y=%zz");
    }
}
