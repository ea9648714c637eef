//! The requests of §2.4 that this system makes.
use super::{ObjectConfig, ObjectName, Routes, answer, token};
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::http::{Ask, Deadlines, Lost, Origin, Reply, Tls, exchange};
use crate::store::{Expected, StoreError, Stored, Swap};
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// A request that takes longer is announced.
const BLINK: Duration = Duration::from_secs(1);
/// Answers that are not objects.
const SMALL: usize = 1 << 20;

/// A client of one object API. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ObjectApi {
    config: ObjectConfig,
    routes: Arc<dyn Routes>,
    tls: Tls,
}

/// `GET /api/object/stat`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// When it was stored, as the server writes it.
    #[serde(default)]
    pub updated_at: serde_json::Value,
}

#[derive(Deserialize)]
struct Receipt {
    #[serde(default)]
    version: Option<StoreVersion>,
}

impl ObjectApi {
    /// A client; nothing is read or asked yet.
    pub fn new(config: ObjectConfig, routes: Arc<dyn Routes>) -> Self {
        let tls = Tls::new("storage.stado", config.ca_file.clone());
        Self { config, routes, tls }
    }

    /// The bytes of an object, at most `limit`; `None` when it is absent.
    pub async fn get(&self, name: &ObjectName, limit: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let reply = self.ask(Method::GET, "/api/object", &[("uri", name.as_str())], Bytes::new(), limit).await;
        Ok(found(reply.map_err(|lost| unreachable(name, lost))?)?.map(|reply| reply.body))
    }

    /// The bytes and their version, from one read.
    pub async fn get_versioned(&self, name: &ObjectName, limit: usize) -> Result<Option<Stored>, StoreError> {
        let query = [("uri", name.as_str()), ("versioned", "true")];
        let reply = self.ask(Method::GET, "/api/object", &query, Bytes::new(), limit).await;
        let Some(reply) = found(reply.map_err(|lost| unreachable(name, lost))?)? else { return Ok(None) };
        let version = version(&reply).ok_or_else(|| StoreError {
            sentence: format!("registry store unreachable ({name}): the object API answered without X-Stado-Version"),
            class: Class::Refused,
        })?;
        Ok(Some(Stored { bytes: reply.body.into(), version }))
    }

    /// Size and time of an object; `None` when it is absent.
    pub async fn stat(&self, name: &ObjectName) -> Result<Option<Stat>, StoreError> {
        let reply = self.ask(Method::GET, "/api/object/stat", &[("uri", name.as_str())], Bytes::new(), SMALL).await;
        let Some(reply) = found(reply.map_err(|lost| unreachable(name, lost))?)? else { return Ok(None) };
        let stat = serde_json::from_slice(&reply.body).map_err(|e| StoreError {
            sentence: format!("registry store unreachable ({name}): the object API's stat is not readable: {e}"),
            class: Class::Refused,
        })?;
        Ok(Some(stat))
    }

    /// Compare-and-swap. A request that was sent and not answered is never sent again: its end is unknown.
    pub async fn swap(&self, name: &ObjectName, expected: &Expected, bytes: Vec<u8>) -> Result<Swap, StoreError> {
        let condition = match expected {
            Expected::Absent => ("if_absent", "true"),
            Expected::Version(version) => ("if_version", version.as_str()),
        };
        let query = [("uri", name.as_str()), condition];
        match self.ask(Method::PUT, "/api/object", &query, bytes.into(), SMALL).await {
            Err(lost) if lost.sent => Ok(Swap::Unknown(unreachable(name, lost))),
            Err(lost) => Err(unreachable(name, lost)),
            Ok(reply) => stored(name, expected, &reply),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Bytes,
        limit: usize,
    ) -> Result<Reply, Lost> {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let target = format!("{path}?{query}");
        let (origin, token) = self.prepare(&method, &target).await?;
        let what = format!("{method} {path} {}", decoded(&query));
        let mut ask = Ask::bearer(method, target, limit, &token)?;
        ask.body = body;
        let run = exchange(&origin, &self.tls, Deadlines::USUAL, ask);
        crate::czekam::when_long(BLINK, &what, &format!("object API {origin}"), "http", run).await
    }

    /// What has to be known before a request is sent. Files only, off the runtime's threads.
    async fn prepare(&self, method: &Method, target: &str) -> Result<(Origin, String), Lost> {
        let not_sent = |class, why: String| Lost::before(class, why);
        let (api, method, target) = (self.clone(), method.clone(), target.to_owned());
        let prepared = tokio::task::spawn_blocking(move || {
            let origin = api.config.address.origin(api.routes.as_ref()).map_err(|e| not_sent(Class::InfraDown, e))?;
            if let Some(held) = origin.socket().and_then(|addr| api.routes.held(addr)) {
                let why = format!("Stado object API not asked: {method} {origin}{target} not sent: {held}");
                return Err(not_sent(Class::InfraDown, why));
            }
            let token = token::read(&api.config.token_file).map_err(|e| not_sent(Class::Config, e))?;
            Ok((origin, token))
        });
        prepared.await.unwrap_or_else(|e| Err(not_sent(Class::Unknown, e.to_string())))
    }
}

/// `X-Stado-Version`.
fn version(reply: &Reply) -> Option<StoreVersion> {
    reply.headers.get("x-stado-version")?.to_str().ok()?.parse().ok()
}

/// `uri=stado://…` as people read it.
fn decoded(query: &str) -> String {
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(" ")
}

fn found(reply: Reply) -> Result<Option<Reply>, StoreError> {
    match reply.status {
        200 => Ok(Some(reply)),
        _ if answer::absent(&reply) => Ok(None),
        _ => Err(answer::refused(&reply)),
    }
}

fn stored(name: &ObjectName, expected: &Expected, reply: &Reply) -> Result<Swap, StoreError> {
    match (reply.status, expected) {
        (200, _) => match serde_json::from_slice::<Receipt>(&reply.body).ok().and_then(|receipt| receipt.version) {
            Some(version) => Ok(Swap::Applied(version)),
            // An older server names no version of what it created: reading back tells.
            None => Ok(Swap::Unknown(StoreError {
                sentence: format!("the object API stored {name} and named no version"),
                class: Class::Unknown,
            })),
        },
        (409, _) => Ok(Swap::Conflict { found: None }),
        (404, Expected::Version(_)) => Ok(Swap::Absent),
        _ if answer::nothing_written(reply) => Err(answer::refused(reply)),
        _ => Ok(Swap::Unknown(answer::refused(reply))),
    }
}

fn unreachable(name: &ObjectName, lost: Lost) -> StoreError {
    let own_words = lost.why.starts_with("Stado ");
    let sentence = if own_words { lost.why } else { format!("registry store unreachable ({name}): {}", lost.why) };
    StoreError { sentence, class: lost.class }
}
