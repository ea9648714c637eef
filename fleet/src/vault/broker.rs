//! The calls of fleet contract §7.2 that this system makes of a vault. No redirect is followed, nothing is retried, and the
//! caller decides how long it waits.
use super::contents::ItemFacts;
use super::{Secret, VaultError};
use crate::fault::Class;
use crate::store::http::{Ask, Deadlines, Lost, Reply, Tls, exchange};
use crate::store::object::{Address, Origin, Routes, token};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Largest answer.
const LARGEST: usize = 16 << 20;
/// How much of a refusal a sentence repeats.
const QUOTED: usize = 1000;

/// Where a vault is, and who asks it.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// HTTPS, HTTP on loopback, or a service of the directory.
    pub address: Address,
    /// `X-Consumer`.
    pub consumer: String,
    /// The grant: owner-only, one line; read at each request, so that a new one needs no restart.
    pub token_file: PathBuf,
    /// PEM roots beside those of the system.
    pub ca_file: Option<PathBuf>,
}

/// A client of a vault. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Broker {
    config: Arc<BrokerConfig>,
    routes: Arc<dyn Routes>,
    tls: Tls,
}

#[derive(Deserialize)]
struct Given {
    value: Secret,
}

impl Broker {
    /// A client; nothing is read or asked yet.
    pub fn new(config: BrokerConfig, routes: Arc<dyn Routes>) -> Self {
        let tls = Tls::new("object_api.skarbiec", config.ca_file.clone());
        Self { config: Arc::new(config), routes, tls }
    }

    /// Where it asks, as people read it.
    pub fn place(&self) -> String {
        match &self.config.address {
            Address::At(origin) => format!("Skarbiec {origin}"),
            Address::Service { service, consumer } => format!("Skarbiec stado://service/{service}?consumer={consumer}"),
        }
    }

    /// `POST /v1/items/read`.
    pub async fn read(&self, item: &str, field: &str) -> Result<Secret, VaultError> {
        let answer: Given = self.ask("/v1/items/read", &json!({"id": item, "field": field})).await?;
        Ok(answer.value)
    }

    /// `POST /v1/items/list`: what this consumer may see.
    pub async fn list(&self) -> Result<Vec<ItemFacts>, VaultError> {
        self.ask("/v1/items/list", &json!({})).await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &'static str, body: &Value) -> Result<T, VaultError> {
        let (origin, grant) = self.prepare(path).await?;
        let lost = |Lost { why, class, .. }| VaultError::new(class, why);
        let mut ask = Ask::bearer(Method::POST, path, LARGEST, &grant).map_err(lost)?;
        ask.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let consumer = HeaderValue::from_str(&self.config.consumer);
        let consumer = consumer.map_err(|e| VaultError::new(Class::Config, format!("X-Consumer: {e}")))?;
        ask.headers.insert(HeaderName::from_static("x-consumer"), consumer);
        ask.body = Bytes::from(body.to_string());
        let reply = exchange(&origin, &self.tls, Deadlines::USUAL, ask).await.map_err(lost)?;
        if reply.status != 200 {
            return Err(refused(&reply));
        }
        // A body that should hold a secret is never repeated.
        serde_json::from_slice(&reply.body).map_err(|_| {
            VaultError::new(Class::Refused, format!("{origin}{path} answered something else than a vault does"))
        })
    }

    /// What has to be known before a request is sent. Files only, off the runtime's threads.
    async fn prepare(&self, path: &'static str) -> Result<(Origin, String), VaultError> {
        let this = self.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let config = &this.config;
            let origin =
                config.address.origin(this.routes.as_ref()).map_err(|e| VaultError::new(Class::InfraDown, e))?;
            if let Some(held) = origin.socket().and_then(|addr| this.routes.held(addr)) {
                let why = format!("Skarbiec not asked: POST {origin}{path} not sent: {held}");
                return Err(VaultError::new(Class::InfraDown, why));
            }
            let grant = token::read_as("Skarbiec grant file", &config.token_file, |place| {
                format!("Skarbiec grant file {place} must not be accessible by group or other users")
            });
            Ok((origin, grant.map_err(|e| VaultError::new(Class::Config, e))?))
        });
        prepared.await.unwrap_or_else(|e| Err(VaultError::new(Class::Unknown, e.to_string())))
    }
}

/// `Skarbiec returned HTTP <n>: <body>`.
fn refused(reply: &Reply) -> VaultError {
    let body = String::from_utf8_lossy(&reply.body);
    let body: String = body.trim().chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let class = match reply.status {
        401 | 403 => Class::Auth,
        404 => Class::NotFound,
        429 => Class::RateLimit,
        500..=599 => Class::InfraDown,
        _ => Class::Refused,
    };
    VaultError::new(class, format!("Skarbiec returned HTTP {}: {body}", reply.status))
}
