//! Fields as they are passed on from and to HTTP/2 (proxy rules 11 and 12). Connection-specific fields are malformed there
//! (RFC 9113 §8.2.2): the engine refuses them before a request gets here.
use super::super::head::is_twin;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};
use std::net::{IpAddr, SocketAddr};

const LOOP: HeaderName = HeaderName::from_static("cdn-loop");
const FORWARDED: [&str; 6] =
    ["forwarded", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"];

/// What is true about a client connection.
#[derive(Debug, Clone)]
pub(super) struct Truth {
    ip: IpAddr,
    port: u16,
    scheme: &'static str,
    /// Our own mark, by which a loop is found.
    hop: String,
}

impl Truth {
    pub(super) fn new(peer: SocketAddr, local: SocketAddr, scheme: &'static str, hop: &str) -> Self {
        Self { ip: peer.ip().to_canonical(), port: local.port(), scheme, hop: hop.to_owned() }
    }

    /// Whether the request came through this router before (proxy rule 4).
    pub(super) fn is_looped(&self, fields: &HeaderMap) -> bool {
        let marks = fields.get_all(LOOP).iter().filter_map(|value| value.to_str().ok());
        marks.flat_map(|value| value.split(',')).any(|mark| mark.trim() == self.hop)
    }

    /// Makes a client's fields those of the request to the backend.
    pub(super) fn rewrite(&self, fields: &mut HeaderMap, authority: &str) {
        fields.remove(header::HOST);
        about_the_client(fields);
        meant_for_one_hop(fields);
        let (ip, port, scheme) = (self.ip, self.port, self.scheme);
        let node = if ip.is_ipv6() { format!("\"[{ip}]\"") } else { ip.to_string() };
        let all = [
            ("x-forwarded-for", ip.to_string()),
            ("x-real-ip", ip.to_string()),
            ("x-forwarded-proto", scheme.to_owned()),
            ("x-forwarded-port", port.to_string()),
            ("x-forwarded-host", authority.to_owned()),
            ("forwarded", format!("for={node};proto={scheme};host=\"{authority}\"")),
        ];
        for (name, value) in all {
            if let Ok(value) = HeaderValue::try_from(value) {
                fields.insert(name, value);
            }
        }
        if let Ok(mark) = HeaderValue::try_from(&self.hop) {
            fields.append(LOOP, mark);
        }
    }
}

/// Makes a backend's fields those of the answer to the client.
pub(super) fn answer(fields: &mut HeaderMap) {
    meant_for_one_hop(fields);
    fields.remove(header::TE);
}

/// Leaves in a trailer section what may come late: nothing that frames, routes or names the client.
pub(super) fn late(fields: &mut HeaderMap) {
    about_the_client(fields);
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::TE, LOOP] {
        fields.remove(name);
    }
    meant_for_one_hop(fields);
}

/// Takes out what says who the client is, and what may be read so.
fn about_the_client(fields: &mut HeaderMap) {
    let twins: Vec<HeaderName> = fields.keys().filter(|name| is_twin(name.as_str())).cloned().collect();
    FORWARDED.iter().for_each(|name| drop(fields.remove(*name)));
    twins.iter().for_each(|name| drop(fields.remove(name)));
}

/// Takes out what is meant for one connection alone.
pub(super) fn meant_for_one_hop(fields: &mut HeaderMap) {
    let named: Vec<HeaderName> = fields
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    let proxy = fields.keys().filter(|name| name.as_str().starts_with("proxy-")).cloned().collect::<Vec<_>>();
    let fixed = [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, HeaderName::from_static("keep-alive")];
    for name in named.into_iter().chain(proxy).chain(fixed) {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn what_a_client_says_of_itself_is_replaced_by_what_is_true() {
        let truth =
            Truth::new("[::ffff:127.0.0.9]:5".parse().unwrap(), "127.0.0.1:8443".parse().unwrap(), "https", "me");
        let mut fields = map(&[
            ("host", "x"),
            ("x-forwarded-for", "1.2.3.4"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-host", "evil"),
            ("x_forwarded_for", "1.2.3.4"),
            ("x-real_ip", "1.2.3.4"),
            ("content_length", "5"),
            ("x_mine", "kept"),
            ("proxy-authorization", "secret"),
            ("te", "trailers"),
            ("cdn-loop", "other"),
            ("a", "b"),
        ]);
        assert!(!truth.is_looped(&fields));
        truth.rewrite(&mut fields, "A.test:8443");
        assert!(truth.is_looped(&fields));
        let expected = map(&[
            ("te", "trailers"),
            ("cdn-loop", "other"),
            ("cdn-loop", "me"),
            ("a", "b"),
            ("x_mine", "kept"),
            ("x-forwarded-for", "127.0.0.9"),
            ("x-real-ip", "127.0.0.9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-port", "8443"),
            ("x-forwarded-host", "A.test:8443"),
            ("forwarded", "for=127.0.0.9;proto=https;host=\"A.test:8443\""),
        ]);
        assert_eq!(fields, expected);
    }

    #[test]
    fn what_is_meant_for_one_hop_goes_no_further() {
        let mut fields = map(&[("connection", "close, x-mine"), ("x-mine", "1"), ("keep-alive", "5"), ("b", "c")]);
        answer(&mut fields);
        assert_eq!(fields, map(&[("b", "c")]));
        let mut fields = map(&[("grpc-status", "0"), ("host", "x"), ("content-length", "3"), ("x-forwarded-for", "y")]);
        late(&mut fields);
        assert_eq!(fields, map(&[("grpc-status", "0")]));
    }
}
