//! Registries for the tests of this crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests see this module")]
use crate::admit::Snapshot;
use crate::document::Document;
use crate::validate::validate;
use serde_json::json;
use std::sync::Arc;

/// Authority `control`, workstation `desk`; service `db` (tcp) and `web` (http) on `control`; `desk` has an adapter for `db`.
pub(crate) fn document(generation: u64, port: u16) -> Document {
    let unit = |name: &str| json!({"name": name, "kind": "systemd", "label": "", "unit": format!("{name}.service"), "path": format!("/etc/{name}")});
    Document::from_value(json!({
        "schema_version": 2,
        "targets": [
            {"name": "control", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@127.0.0.2:22",
             "services": [unit("db"), unit("web")]},
            {"name": "desk", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@127.0.0.3",
             "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15,
                "adapters": [{"service": "db", "consumer": "shop", "bind": "127.0.0.1:17601"}]}}
        ],
        "coordinators": [],
        "service_directory": {
            "authority": {"target": "control", "command": "/opt/stado/bin/stado"},
            "generation": generation,
            "services": {
                "db": {"managed_service": "db", "active_host": "control",
                       "endpoints": {"control": {"url": format!("tcp://127.0.0.1:{port}")}},
                       "consumers": {"shop": {"capabilities": []}}},
                "web": {"managed_service": "web", "active_host": "control",
                        "endpoints": {"control": {"url": "http://127.0.0.1:8080"}},
                        "consumers": {"shop": {"capabilities": []}}}
            }
        },
        "note": serde_json::from_str::<serde_json::Value>(r#"{"kept": 1.50}"#).unwrap()
    }))
}

/// The same registry after `desk` was promoted.
pub(crate) fn promoted(held: &Document) -> Document {
    let (target, command) = ("desk".parse().unwrap(), "/opt/stado/bin/stado");
    let promotion = crate::edit::Promotion { target: &target, command, since: "2026-11-30T20:00:00Z", gap: 1 };
    crate::edit::promote(held, &promotion).unwrap().document
}

/// A registry that names no hosts.
pub(crate) fn empty() -> Document {
    Document::from_value(json!({"schema_version": 2, "targets": [], "coordinators": []}))
}

/// A valid snapshot at a version.
pub(crate) fn snapshot(document: Document, version: &str) -> Snapshot {
    let valid = validate(document).unwrap_or_else(|e| panic!("{e}"));
    Snapshot { valid: Arc::new(valid), store_version: version.parse().unwrap() }
}
