//! A small Docker Engine API over a Unix socket, so that bollard and our transport are tested too: it can break off in
//! the middle of an event, and be replaced by another one at the same path.
use axum::extract::{Path as Segment, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, body::Body};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// What an engine knows; it can outlive the engine that serves it.
#[derive(Debug)]
pub(super) struct Store {
    containers: Mutex<BTreeMap<String, Value>>,
    events: broadcast::Sender<Option<String>>,
    pub(super) at_once: AtomicUsize,
    pub(super) most_at_once: AtomicUsize,
}

impl Store {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            containers: Mutex::default(),
            events: broadcast::Sender::new(4096),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        })
    }

    /// Runs a container in `project`, published on `port`.
    pub(super) fn run(&self, id: &str, name: &str, port: u16) {
        let labels = json!({ "io.devmesh.enable": "true", "io.devmesh.name": name, "io.devmesh.container-port": "80" });
        let inspected = json!({
            "Id": id, "Name": format!("/{id}"), "Config": { "Labels": labels },
            "State": { "Status": "running", "Running": true, "StartedAt": "2026-11-30T10:00:00.5Z" },
            "HostConfig": { "NetworkMode": "default" },
            "NetworkSettings": { "Ports": { "80/tcp": [{ "HostIp": "127.0.0.1", "HostPort": port.to_string() }] } },
        });
        self.containers.lock().unwrap().insert(id.into(), inspected);
        let event = json!({ "Type": "container", "Action": "start", "Actor": { "ID": id, "Attributes": labels } });
        self.tell(&format!("{event}\n"));
    }

    pub(super) fn forget(&self, id: &str) {
        self.containers.lock().unwrap().remove(id);
    }

    /// Sends these bytes to whoever listens to events.
    pub(super) fn tell(&self, bytes: &str) {
        let _ = self.events.send(Some(bytes.to_owned()));
    }

    /// Ends all event streams.
    pub(super) fn break_events(&self) {
        let _ = self.events.send(None);
    }
}

/// Serves `store` at `path` until dropped; the file stays, as after a killed engine.
pub(super) struct Served(JoinHandle<()>);

impl Served {
    pub(super) fn start(path: &Path, store: Arc<Store>) -> Self {
        let _ = std::fs::remove_file(path);
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        let routes = Router::new()
            .route("/version", get(async || Json(json!({ "Version": "20.10.24", "ApiVersion": "1.41" }))))
            .route("/containers/json", get(list))
            .route("/containers/{id}/json", get(inspect))
            .route("/events", get(events))
            .with_state(store);
        Self(tokio::spawn(async move {
            // Ends with its task.
            let _ = axum::serve(listener, routes).await;
        }))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn list(State(store): State<Arc<Store>>) -> Json<Value> {
    let containers = store.containers.lock().unwrap();
    let row = |c: &Value| {
        json!({ "Id": c["Id"], "Names": [c["Name"]], "State": "running", "Status": "Up 5 minutes",
            "Labels": c["Config"]["Labels"], "Ports": [] })
    };
    Json(containers.values().map(row).collect())
}

async fn inspect(State(store): State<Arc<Store>>, Segment(id): Segment<String>) -> Response {
    let now = store.at_once.fetch_add(1, Ordering::SeqCst) + 1;
    store.most_at_once.fetch_max(now, Ordering::SeqCst);
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    store.at_once.fetch_sub(1, Ordering::SeqCst);
    match store.containers.lock().unwrap().get(&id) {
        Some(container) => Json(container.clone()).into_response(),
        None => (StatusCode::NOT_FOUND, Json(json!({ "message": "No such container" }))).into_response(),
    }
}

async fn events(State(store): State<Arc<Store>>) -> Response {
    let told = futures_util::stream::unfold(store.events.subscribe(), |mut receiver| async {
        let bytes = receiver.recv().await.ok()??;
        Some((Ok::<_, std::io::Error>(bytes), receiver))
    });
    Body::from_stream(told).into_response()
}
