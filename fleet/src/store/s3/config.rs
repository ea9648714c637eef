//! `s3://bucket/prefix?endpoint=…&region=…`.
use crate::store::http::{Origin, Tls, is_loopback};
use crate::store::location;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

const OPTIONS: [&str; 4] = ["endpoint", "region", "timeout", "plaintext"];
/// Where a bucket is when nobody says.
const REGION: &str = "us-east-1";

/// A bucket, and the object in it that is the registry.
#[derive(Debug, Clone)]
pub struct S3Config {
    pub(super) bucket: String,
    pub(super) key: String,
    /// `None`: that of the region at AWS.
    pub(super) endpoint: Option<Url>,
    pub(super) region: String,
    pub(super) timeout: Duration,
    pub(super) tls: Tls,
}

impl S3Config {
    /// Reads a store's URL. `ca_file` holds PEM roots beside those of the system.
    ///
    /// # Errors
    /// A sentence that quotes the URL and says what is wrong with it.
    pub fn parse(text: &str, ca_file: Option<PathBuf>) -> Result<Self, String> {
        Self::read(text, ca_file).map_err(|why| {
            // What may be a secret is not repeated.
            let shown = if text.contains('@') { "s3://…" } else { text };
            format!("the store URL {shown:?} cannot be used: {why}")
        })
    }

    fn read(text: &str, ca_file: Option<PathBuf>) -> Result<Self, String> {
        let rest = text.strip_prefix("s3://").ok_or("it must be s3://bucket/prefix?endpoint=https://…")?;
        let parts = location::split(rest, &OPTIONS)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if parts.place.is_empty() || !parts.place.chars().all(plain) {
            return Err(format!("{:?} is no name of a bucket", parts.place));
        }
        let endpoint = parts.option("endpoint").map(|text| endpoint(text, parts.plaintext()?)).transpose()?;
        Ok(Self {
            bucket: parts.place.to_owned(),
            key: parts.key(),
            endpoint,
            region: parts.option("region").unwrap_or(REGION).to_owned(),
            timeout: parts.timeout()?,
            tls: Tls::new("storage.s3", ca_file),
        })
    }

    /// As people see it.
    pub(super) fn location(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.key)
    }
}

/// An origin: HTTPS, or HTTP where nobody listens in between.
fn endpoint(text: &str, plaintext: bool) -> Result<Url, String> {
    let refused = |why: &str| format!("its endpoint {text:?} {why}");
    let url = Url::parse(text).map_err(|e| refused(&format!("is no URL: {e}")))?;
    let bare = url.username().is_empty() && url.password().is_none() && url.path() == "/" && url.query().is_none();
    if Origin::of(&url).is_none() || !bare || !matches!(url.scheme(), "http" | "https") {
        return Err(refused("must be an origin, such as https://s3.example:9000"));
    }
    if url.scheme() == "http" && !is_loopback(&url) && !plaintext {
        return Err(refused(
            "is not HTTPS, so whoever is on the way may read and change the registry; use https://, or say plaintext=allow \
             as well",
        ));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_named_by_a_url() {
        let config =
            S3Config::parse("s3://fleet/prod?endpoint=https://s3.example:9000&region=eu-1&timeout=3s", None).unwrap();
        assert_eq!((config.bucket.as_str(), config.key.as_str()), ("fleet", "prod/registry.json"));
        assert_eq!((config.region.as_str(), config.timeout), ("eu-1", Duration::from_secs(3)));
        assert_eq!(config.location(), "s3://fleet/prod/registry.json");
        let aws = S3Config::parse("s3://fleet", None).unwrap();
        assert_eq!((aws.endpoint, aws.region.as_str(), aws.key.as_str()), (None, "us-east-1", "registry.json"));
        assert!(S3Config::parse("s3://b?endpoint=http://127.0.0.1:9000", None).is_ok());
        assert!(S3Config::parse("s3://b?endpoint=http://10.0.0.1:9000&plaintext=allow", None).is_ok());
    }

    #[test]
    fn what_cannot_be_a_bucket_is_said_and_no_secret_is_repeated() {
        for (bad, why) in [
            ("gs://x", "it must be s3://"),
            ("s3://", "is no name of a bucket"),
            ("s3://a b", "is no name of a bucket"),
            ("s3://b?endpoint=s3.example", "is no URL"),
            ("s3://b?endpoint=ftp://x", "must be an origin"),
            ("s3://b?endpoint=https://x/path", "must be an origin"),
            ("s3://b?endpoint=http://10.0.0.1:9000", "is not HTTPS"),
        ] {
            let error = S3Config::parse(bad, None).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
        let error = S3Config::parse("s3://key:hidden@bucket/x", None).unwrap_err();
        assert!(error.contains("credentials do not belong") && !error.contains("hidden"), "{error}");
    }
}
