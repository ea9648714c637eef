//! AWS Signature Version 4, as much of it as requests for one object need: no query, and a path of characters that stand for
//! themselves. Pure.
use super::keys::Pair;
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What is signed beside the body.
pub(super) struct Signing<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) host: &'a str,
    pub(super) region: &'a str,
    pub(super) at: Timestamp,
}

/// The headers that show who asks.
pub(super) fn sign(signing: &Signing<'_>, pair: &Pair, body: &[u8]) -> Vec<(&'static str, String)> {
    let date = signing.at.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut headers = vec![
        ("host", signing.host.to_owned()),
        ("x-amz-content-sha256", hex::encode(Sha256::digest(body))),
        ("x-amz-date", date.clone()),
    ];
    if let Some(token) = &pair.token {
        headers.push(("x-amz-security-token", token.reveal().to_owned()));
    }
    let authorization = authorization(signing, pair, &headers, &date);
    headers.retain(|(name, _)| *name != "host");
    headers.push(("authorization", authorization));
    headers
}

/// `headers` in the order of their names.
fn authorization(signing: &Signing<'_>, pair: &Pair, headers: &[(&'static str, String)], date: &str) -> String {
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let payload =
        headers.iter().find(|(name, _)| *name == "x-amz-content-sha256").map_or("", |(_, hash)| hash.as_str());
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let request = format!("{}\n{}\n\n{lines}\n{names}\n{payload}", signing.method, signing.path);
    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{}/s3/aws4_request", signing.region);
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex::encode(Sha256::digest(request)));
    let secret = format!("AWS4{}", pair.secret.reveal());
    let key = [day, signing.region, "s3", "aws4_request"].iter().fold(secret.into_bytes(), |key, part| mac(&key, part));
    let signature = hex::encode(mac(&key, &text));
    format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", pair.id)
}

/// A key may have any length.
fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::http::Secret;

    fn pair() -> Pair {
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        Pair { id: "AKIAIOSFODNN7EXAMPLE".into(), secret, token: None }
    }

    fn signing<'a>() -> Signing<'a> {
        Signing {
            method: "GET",
            path: "/test.txt",
            host: "examplebucket.s3.amazonaws.com",
            region: "us-east-1",
            at: "2013-05-24T00:00:00Z".parse().unwrap(),
        }
    }

    #[test]
    fn the_documented_example_has_its_documented_signature() {
        let empty = hex::encode(Sha256::digest(b""));
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com".to_owned()),
            ("range", "bytes=0-9".to_owned()),
            ("x-amz-content-sha256", empty),
            ("x-amz-date", "20130524T000000Z".to_owned()),
        ];
        let signed = authorization(&signing(), &pair(), &headers, "20130524T000000Z");
        assert_eq!(
            signed,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn a_request_carries_its_hash_its_time_and_its_token() {
        let with_token = Pair { token: Some(Secret::new("token")), ..pair() };
        let headers = sign(&signing(), &with_token, b"body");
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "authorization"]);
        assert_eq!(headers[0].1, hex::encode(Sha256::digest(b"body")));
        assert_eq!(headers[1].1, "20130524T000000Z");
        assert!(headers[3].1.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
        let others = sign(&signing(), &pair(), b"body");
        assert_ne!(others[2].1, headers[3].1, "what is signed counts");
    }
}
