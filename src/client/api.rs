//! Typed calls of the local API (mesh contract §1), one request each and no retries.
use super::error::Error;
use super::http::{Answer, Request, exchange};
use serde::de::DeserializeOwned;
use stado_fleet::wire::{
    CertificateList, ConnectionList, ErrorEnvelope, Health, HeartbeatResponse, Inspect, Overview, RefusedList,
    RegisterRequest, RegisterResponse, Service, ServiceList,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Dial and request limit of the contract.
const LIMIT: Duration = Duration::from_secs(5);

/// The daemon's socket when nothing else is said: `<home>/.devmesh/run/devmesh.sock`, or `devmesh.sock` in the
/// temporary directory for an account without a home. No environment variable but the home directory is read.
pub fn default_socket() -> PathBuf {
    match std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) {
        Some(home) => home.join(".devmesh/run/devmesh.sock"),
        None => std::env::temp_dir().join("devmesh.sock"),
    }
}

/// The daemon at one socket.
///
/// ```no_run
/// # async fn example() -> Result<(), stado::client::Error> {
/// let api = stado::client::Api::new(stado::client::default_socket());
/// let service = api.resolve("checkout.postgres").await?;
/// println!("{} is {} at {}", service.name, service.status, service.frontend.endpoint());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Api {
    socket: PathBuf,
    limit: Duration,
}

impl Default for Api {
    fn default() -> Self {
        Self::new(default_socket())
    }
}

impl Api {
    /// A daemon by its socket. Nothing is dialled yet.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), limit: LIMIT }
    }

    /// Another limit than 5 s, for the dial and for the request each.
    #[must_use]
    pub fn with_timeout(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// `GET /v1/health`.
    pub async fn health(&self) -> Result<Health, Error> {
        self.get("/v1/health".into()).await
    }

    /// Whether the daemon has what Stado adds to the first specification (forget, pin, rename, events, owners).
    pub async fn has_additions(&self) -> Result<bool, Error> {
        match self.get::<serde::de::IgnoredAny>("/v1/openapi.json".into()).await {
            Ok(_) => Ok(true),
            Err(Error::Api { status: 404 | 405, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The services of one owner: those whose owner key is `owner`, or begins with it and a colon (`docker:checkout`).
    pub async fn list_owned(&self, owner: &str) -> Result<Vec<Service>, Error> {
        let found: ServiceList = self.get(format!("/v1/services?owner={}", segment(owner))).await?;
        // A daemon that does not know the filter would have answered everything.
        match found.owner {
            Some(_) => Ok(found.services),
            None => {
                Err(Error::Invalid("this daemon cannot list by owner; `inspect` shows the owner of one service".into()))
            }
        }
    }

    /// Every known service, sorted by name.
    pub async fn list(&self) -> Result<Vec<Service>, Error> {
        Ok(self.get::<ServiceList>("/v1/services".into()).await?.services)
    }

    /// One service; `service_not_found` for a name that the daemon does not know.
    pub async fn resolve(&self, name: &str) -> Result<Service, Error> {
        self.get(format!("/v1/services/{}", segment(name))).await
    }

    /// One service with its backend and producer.
    pub async fn inspect(&self, name: &str) -> Result<Inspect, Error> {
        self.get(format!("/v1/services/{}/inspect", segment(name))).await
    }

    /// Who is connected to one service, and who was. Daemons of the first version do not know the question.
    pub async fn connections(&self, name: &str) -> Result<ConnectionList, Error> {
        self.get(format!("/v1/services/{}/connections", segment(name))).await
    }

    /// What containers ask for and do not get, and how their engine is reached. Daemons of the first version do not
    /// know the question.
    pub async fn refused(&self) -> Result<RefusedList, Error> {
        self.get("/v1/refused".into()).await
    }

    /// What certificates the daemon's HTTP router has. Daemons of earlier versions do not know the question.
    pub async fn certificates(&self) -> Result<CertificateList, Error> {
        self.get("/v1/certificates".into()).await
    }

    /// Everything that this host serves, with what was counted. Daemons of earlier versions do not know the question.
    pub async fn overview(&self) -> Result<Overview, Error> {
        self.get("/v1/overview".into()).await
    }

    /// Creates a registration. With an `idempotency_key` (printable, one line), a repeated request answers the
    /// registration that the first one made, so that a lost answer does not block the name until the lease ends.
    pub async fn register(
        &self,
        request: &RegisterRequest,
        idempotency_key: Option<&str>,
    ) -> Result<RegisterResponse, Error> {
        let body = serde_json::to_vec(request).map_err(|e| Error::Invalid(format!("request: {e}")))?;
        let headers = idempotency_key.map(|key| ("Idempotency-Key", key.to_owned())).into_iter().collect();
        let path = "/v1/registrations".to_owned();
        decode(self.send(Request { method: "POST", path, headers, body: Some(&body) }).await?)
    }

    /// Renews a lease.
    pub async fn heartbeat(&self, registration_id: &str, lease_token: &str) -> Result<HeartbeatResponse, Error> {
        let path = format!("/v1/registrations/{}/heartbeat", segment(registration_id));
        decode(self.send(Request { method: "POST", path, headers: bearer(lease_token), body: None }).await?)
    }

    /// Ends a registration. The frontend stays bound and the name stays listed, unavailable.
    pub async fn deregister(&self, registration_id: &str, lease_token: &str) -> Result<(), Error> {
        let path = format!("/v1/registrations/{}", segment(registration_id));
        self.send(Request { method: "DELETE", path, headers: bearer(lease_token), body: None }).await?;
        Ok(())
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, Error> {
        decode(self.send(Request { method: "GET", path, headers: Vec::new(), body: None }).await?)
    }

    /// Any 2xx answer, or the error that the answer is.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Answer, Error> {
        let answer = exchange(&self.socket, &request, self.limit)
            .await
            .map_err(|cause| Error::Unreachable { socket: self.socket.clone(), cause })?;
        if (200..300).contains(&answer.status) { Ok(answer) } else { Err(refusal(answer)) }
    }
}

fn bearer(token: &str) -> Vec<(&'static str, String)> {
    vec![("Authorization", format!("Bearer {token}"))]
}

pub(super) fn decode<T: DeserializeOwned>(answer: Answer) -> Result<T, Error> {
    serde_json::from_slice(&answer.body).map_err(|e| Error::Api {
        status: answer.status,
        code: "internal_error".into(),
        message: format!("the answer is not understood ({e}): {}", text(&answer.body)),
    })
}

fn refusal(answer: Answer) -> Error {
    match serde_json::from_slice::<ErrorEnvelope>(&answer.body) {
        Ok(ErrorEnvelope { error }) => Error::Api { status: answer.status, code: error.code, message: error.message },
        Err(_) => Error::Api { status: answer.status, code: "internal_error".into(), message: text(&answer.body) },
    }
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim_end().to_owned()
}

/// A name as one path segment.
pub(super) fn segment(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    name.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
