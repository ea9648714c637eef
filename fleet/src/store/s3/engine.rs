//! What a registry needs of a bucket: conditional writes and plain reads of small objects. Behind the S3 interface, or anywhere
//! that keeps the same promise.
use super::config::S3Config;
use super::keys::Keys;
use super::outcome::{self, Found, Put};
use super::sign::{Signing, sign};
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::http::{Ask, Deadlines, Lost, Origin, Reply, Tls, exchange};
use crate::store::local::LARGEST;
use crate::store::{Expected, StoreError, StoreFuture};
use bytes::Bytes;
use http::header::{HOST, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, Method};
use jiff::Timestamp;

/// Objects by their keys, each with a version that a write may depend on.
pub(super) trait Engine: Send + Sync + std::fmt::Debug {
    /// Reads an object, unless it still is at a version.
    fn get<'a>(&'a self, key: &'a str, unless: Option<&'a StoreVersion>) -> StoreFuture<'a, Result<Found, StoreError>>;
    /// Writes an object if the condition holds.
    fn put<'a>(
        &'a self,
        key: &'a str,
        expected: &'a Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Put, StoreError>>;
    /// Takes an object away; that it may stay is no harm.
    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;
}

/// A bucket behind the S3 interface.
#[derive(Debug)]
pub(super) struct Bucket {
    origin: Origin,
    /// As it is signed: without a port that goes without saying.
    host: String,
    /// Before each key: `/bucket/`, or `/` where the bucket is in the host.
    path: String,
    region: String,
    deadlines: Deadlines,
    tls: Tls,
    keys: Keys,
}

impl Bucket {
    /// The bucket of a configuration.
    pub(super) fn new(config: &S3Config, keys: Keys) -> Result<Self, String> {
        let (url, path) = match &config.endpoint {
            Some(endpoint) => (endpoint.clone(), format!("/{}/", config.bucket)),
            None => {
                let url = format!("https://{}.s3.{}.amazonaws.com", config.bucket, config.region);
                (url::Url::parse(&url).map_err(|e| format!("{url}: {e}"))?, "/".to_owned())
            }
        };
        let origin = Origin::of(&url).ok_or_else(|| format!("{url} names no host"))?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self {
            host: format!("{}{port}", origin.host),
            origin,
            path,
            region: config.region.clone(),
            deadlines: Deadlines { connect: config.timeout, silence: config.timeout },
            tls: config.tls.clone(),
            keys,
        })
    }

    async fn ask(
        &self,
        method: Method,
        key: &str,
        condition: Option<(HeaderName, String)>,
        body: Vec<u8>,
    ) -> Result<Reply, Lost> {
        let unusable = |why: String| Lost::before(Class::Config, why);
        let keys = self.keys.clone();
        let pair = tokio::task::spawn_blocking(move || keys.read()).await;
        let pair = pair.unwrap_or_else(|e| Err(e.to_string())).map_err(unusable)?;
        let target = format!("{}{key}", self.path);
        let limit = usize::try_from(LARGEST).unwrap_or(usize::MAX);
        let mut ask = Ask::new(method, target.as_str(), limit);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|e| unusable(e.to_string()));
        ask.headers.insert(HOST, value(&self.host)?);
        if let Some((name, text)) = condition {
            ask.headers.insert(name, value(&text)?);
        }
        let signing = Signing {
            method: ask.method.as_str(),
            path: &target,
            host: &self.host,
            region: &self.region,
            at: Timestamp::now(),
        };
        for (name, text) in sign(&signing, &pair, &body) {
            let mut text = value(&text)?;
            text.set_sensitive(true);
            ask.headers.insert(HeaderName::from_static(name), text);
        }
        ask.body = Bytes::from(body);
        exchange(&self.origin, &self.tls, self.deadlines, ask).await
    }
}

impl Engine for Bucket {
    fn get<'a>(&'a self, key: &'a str, unless: Option<&'a StoreVersion>) -> StoreFuture<'a, Result<Found, StoreError>> {
        Box::pin(async move {
            let condition = unless.map(|version| (IF_NONE_MATCH, etag(version)));
            outcome::read(self.ask(Method::GET, key, condition, Vec::new()).await)
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        expected: &'a Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let condition = match expected {
                Expected::Absent => (IF_NONE_MATCH, "*".to_owned()),
                Expected::Version(version) => (IF_MATCH, etag(version)),
            };
            outcome::written(self.ask(Method::PUT, key, Some(condition), bytes).await)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.ask(Method::DELETE, key, None, Vec::new()).await;
        })
    }
}

fn etag(version: &StoreVersion) -> String {
    format!("\"{version}\"")
}
