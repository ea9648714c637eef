//! Which request is which (§2.4).
use super::access::{Access, Action, Denied};
use super::answer::{Answer, Body};
use super::list;
use super::name::{Name, RELEASES};
use super::objects::{Found, Objects};
use super::put;
use super::range::{Part, part};
use super::request::Request;
use serde_json::json;
use stado_fleet::store::local::LARGEST;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use tokio::io::AsyncRead;

const UNAUTHORIZED: &str = "unauthorized";
/// Told to the right bearer alone.
const NOT_COVERED: &str = "object_grant_does_not_cover_key";

/// What answers requests.
#[derive(Debug, Clone)]
pub(super) struct Api {
    pub(super) objects: Objects,
    pub(super) access: Arc<Access>,
    /// Whether a `Host` that is not this host's loopback may be asked for: over TLS, or behind a proxy that is trusted.
    pub(super) any_host: bool,
}

/// Work on files, where it may block.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(io::Error::other(e.to_string())))
}

impl Api {
    /// The answer; `None` closes the connection without one.
    pub(super) async fn answer<R: AsyncRead + Unpin>(
        &self,
        request: &Request,
        stream: &mut R,
        early: Vec<u8>,
    ) -> Option<Answer> {
        if request.browser || (request.foreign && !self.any_host) {
            return Some(Answer::error(403, "forbidden"));
        }
        let method = request.method.as_str();
        match (method, request.path.as_str()) {
            ("GET", "/healthz" | "/livez") => Some(self.health().await),
            ("GET", "/api/object/list") => Some(self.list(request).await),
            ("GET", "/api/object" | "/api/object/stat" | "/api/release/object") | ("PUT" | "DELETE", "/api/object") => {
                let Some(uri) = request.query.get("uri").filter(|uri| !uri.is_empty()) else {
                    return Some(Answer::error(400, "uri is required"));
                };
                let Some(name) = Name::parse(uri) else {
                    let why = format!("{uri:?} is no object: it must be stado://<namespace>/<key>");
                    return Some(Answer::error(400, &why));
                };
                match method {
                    "PUT" => put::put(self, request, name, stream, early).await,
                    "DELETE" => Some(self.delete(request, name).await),
                    _ => Some(self.read(request, name).await),
                }
            }
            ("GET" | "PUT" | "DELETE", _) => Some(Answer::error(404, "not found")),
            _ => Some(Answer::error(501, "not implemented")),
        }
    }

    /// `Err`: the answer of a request that may not be done.
    pub(super) async fn permitted(
        &self,
        request: &Request,
        name: &Name,
        action: Action,
        refusal: &str,
    ) -> Result<(), Answer> {
        let allowed = self.access.allow(&name.namespace, &name.key, action, request.bearer.as_deref()).await;
        match allowed {
            Ok(()) => Ok(()),
            Err(Denied::Unauthorized) => Err(Answer::error(401, refusal)),
            Err(Denied::NotCovered) => Err(Answer::json(401, &json!({"error": refusal, "reason": NOT_COVERED}))),
            Err(Denied::Unavailable(cause)) => {
                tracing::debug!(target: "stado::fleet", "object API: {cause}");
                Err(Answer::json(503, &json!({"error": "object authorization unavailable", "cause": cause})))
            }
        }
    }

    async fn health(&self) -> Answer {
        let access = Arc::clone(&self.access);
        let ok = off_thread(move || Ok(access.is_open())).await.unwrap_or(false);
        Answer::json(200, &json!({"ok": true, "degraded": !ok, "boundaries": {"object": ok, "release": true}}))
    }

    async fn list(&self, request: &Request) -> Answer {
        let Some(namespace) = request.query.get("namespace").filter(|name| !name.is_empty()) else {
            return Answer::error(400, "namespace is required");
        };
        let prefix = request.query.get("prefix").cloned().unwrap_or_default();
        // The grammar of names keeps both inside the store.
        if Name::parse(&format!("stado://{namespace}/{prefix}x")).is_none() {
            return Answer::error(400, "namespace or prefix is not one of an object");
        }
        let asked = Name { namespace: namespace.clone(), key: prefix };
        if let Err(answer) = self.permitted(request, &asked, Action::List, UNAUTHORIZED).await {
            return answer;
        }
        let objects = self.objects.clone();
        match off_thread(move || list::list(&objects, &asked.namespace, &asked.key)).await {
            Ok(found) => Answer::json(200, &json!({ "objects": found })),
            Err(error) => failed(&error),
        }
    }

    async fn delete(&self, request: &Request, name: Name) -> Answer {
        if let Err(answer) = self.permitted(request, &name, Action::Delete, UNAUTHORIZED).await {
            return answer;
        }
        if name.namespace == RELEASES {
            return Answer::error(403, "forbidden");
        }
        let (objects, uri) = (self.objects.clone(), name.to_string());
        match off_thread(move || objects.delete(&name)).await {
            Ok(()) => Answer::json(200, &json!({"state": "absent", "uri": uri})),
            Err(error) => Answer::error(500, &error.to_string()),
        }
    }

    async fn read(&self, request: &Request, name: Name) -> Answer {
        let stat = request.path == "/api/object/stat";
        if request.path == "/api/release/object" {
            if name.namespace != RELEASES {
                return Answer::error(403, "forbidden");
            }
        } else {
            let action = if stat { Action::Stat } else { Action::Get };
            if let Err(answer) = self.permitted(request, &name, action, UNAUTHORIZED).await {
                return answer;
            }
        }
        let (objects, request, uri) = (self.objects.clone(), request.clone(), name.to_string());
        let answered = off_thread(move || {
            let Some(found) = objects.find(&name)? else { return Ok(Answer::absent(&uri)) };
            if stat {
                return Ok(Answer::json(
                    200,
                    &json!({
                        "state": "present", "uri": uri, "size": found.size, "updated_at": list::timestamp(found.modified),
                        "metadata": objects.metadata(&name),
                    }),
                ));
            }
            let content_type = objects.metadata(&name).remove("content_type");
            let answer =
                if request.asks("versioned") { versioned(found)? } else { bytes(found, request.range.as_deref())? };
            Ok(Answer { content_type: content_type.unwrap_or(answer.content_type), ..answer })
        });
        answered.await.unwrap_or_else(|error| failed(&error))
    }
}

fn failed(error: &io::Error) -> Answer {
    tracing::warn!(target: "stado::fleet", "object API: {error}");
    Answer::text(500, "dashboard error")
}

/// Bytes and their version, from one read: what is written meanwhile is another file.
fn versioned(found: Found) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    found.file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("a versioned object has at most {LARGEST} bytes")));
    }
    let version = super::objects::hash(bytes.as_slice())?;
    let answer = Answer { body: Body::Bytes(bytes), ..octets(200) };
    Ok(answer.with("X-Stado-Version", &version))
}

fn bytes(mut found: Found, range: Option<&str>) -> io::Result<Answer> {
    let size = found.size;
    Ok(match part(range, size) {
        Part::Whole => Answer { body: Body::File(found.file, size), ..octets(200) },
        Part::Outside => octets(416).with("Content-Range", &format!("bytes */{size}")),
        Part::Bytes { first, last } => {
            found.file.seek(SeekFrom::Start(first))?;
            let answer = Answer { body: Body::File(found.file, last - first + 1), ..octets(206) };
            answer.with("Content-Range", &format!("bytes {first}-{last}/{size}"))
        }
    }
    .with("Accept-Ranges", "bytes"))
}

fn octets(status: u16) -> Answer {
    let content_type = "application/octet-stream".to_owned();
    Answer { status, content_type, headers: String::new(), body: Body::Bytes(Vec::new()) }
}
