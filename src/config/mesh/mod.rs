//! The mesh's settings: defaults < configuration file < environment < arguments < flags (mesh contract §3.3, §4).
mod file;
mod http;
mod settings;
mod tls;

pub use settings::MeshSettings;

use super::{ConfigError, Env, Layers, Source, docker_lookup, wrong};
use crate::args::MeshFlags;
use std::path::Path;

/// What a value has to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Bool,
    Duration,
    List,
}

/// One setting: its flag, its key in the file, what it looks like, and its built-in value.
struct Field {
    name: &'static str,
    key: &'static str,
    kind: Kind,
    default: Option<&'static str>,
}

const fn field(name: &'static str, key: &'static str, kind: Kind, default: Option<&'static str>) -> Field {
    Field { name, key, kind, default }
}

/// The whole table. `socket` and `state` have defaults that depend on the home directory.
const FIELDS: &[Field] = &[
    field("socket", "socket", Kind::Text, None),
    field("state", "state_path", Kind::Text, None),
    field("tcp-frontend-host", "tcp_frontend_host", Kind::Text, Some("127.0.0.1")),
    field("tcp-frontend-min", "tcp_frontend_min", Kind::Number, Some("15000")),
    field("tcp-frontend-max", "tcp_frontend_max", Kind::Number, Some("19999")),
    field("lease-ttl", "lease_ttl", Kind::Duration, Some("15s")),
    field("frontend-idle-grace", "frontend_idle_grace", Kind::Duration, Some("10m")),
    field("shutdown-timeout", "shutdown_timeout", Kind::Duration, Some("5s")),
    field("also-bind", "also_bind", Kind::List, None),
    field("allow-beyond-this-machine", "allow_beyond_this_machine", Kind::List, None),
    field("metrics-bind", "metrics_bind", Kind::Text, None),
    field("docker-enabled", "docker.enabled", Kind::Bool, Some("true")),
    field(
        "docker-allow-non-loopback-published-ports",
        "docker.allow_non_loopback_published_ports",
        Kind::Bool,
        Some("false"),
    ),
    field("http-enabled", "http.enabled", Kind::Bool, Some("false")),
    field("http-addr", "http.http_addr", Kind::Text, Some("127.0.0.1:8088")),
    field("https-addr", "http.https_addr", Kind::Text, Some("127.0.0.1:8443")),
    field("http-base-domain", "http.base_domain", Kind::Text, None),
    field("http-cert-file", "http.cert_file", Kind::Text, None),
    field("http-key-file", "http.key_file", Kind::Text, None),
    field("http-certificates", "http.certificates", Kind::List, None),
    field("http-access-log", "http.access_log", Kind::Text, None),
    field("http-access-log-format", "http.access_log_format", Kind::Text, Some("json")),
    field("http-access-log-rotate", "http.access_log_rotate", Kind::Text, Some("daily")),
    field("http-access-log-keep", "http.access_log_keep", Kind::Number, Some("7")),
    field("http-head-bytes", "http.head_bytes", Kind::Number, Some("65536")),
    field("http-header-count", "http.header_count", Kind::Number, Some("128")),
    field("http-connections", "http.connections", Kind::Number, Some("16384")),
    field("http-service-requests", "http.service_requests", Kind::Number, Some("4096")),
    field("http-head-timeout", "http.head_timeout", Kind::Duration, Some("30s")),
    field("http-tls-timeout", "http.tls_timeout", Kind::Duration, Some("30s")),
    field("http-idle-timeout", "http.idle_timeout", Kind::Duration, Some("10m")),
    field("http-unread-timeout", "http.unread_timeout", Kind::Duration, Some("10m")),
    field("http-backend-idle-timeout", "http.backend_idle_timeout", Kind::Duration, Some("1m")),
    field("http-h2-streams", "http.h2_streams", Kind::Number, Some("256")),
    field("http-h2-resets", "http.h2_resets", Kind::Number, Some("64")),
    field("config", "", Kind::Text, None),
];

/// The name of a setting's variable: `DEVMESH_TCP_FRONTEND_MIN`.
pub(crate) fn variable(name: &str) -> String {
    format!("DEVMESH_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// All layers of the mesh's settings, before any value is checked, and what was found odd on the way.
#[derive(Debug, Clone, Default)]
pub struct MeshLayers {
    /// Values with their sources.
    pub layers: Layers,
    /// Sentences worth a warning: unknown keys of the file.
    pub warnings: Vec<String>,
}

impl MeshLayers {
    /// Reads all sources. Errors are an unreadable or malformed configuration file, or a variable that is not text.
    pub fn read(flags: &MeshFlags, env: &Env) -> Result<Self, ConfigError> {
        let mut layers = Layers::declare(FIELDS.iter().map(|f| f.name));
        layers.set("socket", Source::Defaults, env.default_socket().to_string_lossy());
        if let Ok(dir) = env.config_dir() {
            layers.set("state", Source::Defaults, dir.join("devmesh/state.json").to_string_lossy());
        }
        for field in FIELDS {
            if let Some(default) = field.default {
                layers.set(field.name, Source::Defaults, default);
            }
            if let Some(value) = env.text(&variable(field.name))? {
                layers.set(field.name, Source::Env, value);
            }
        }
        for (name, value) in given(flags) {
            layers.set(name, Source::Flag, value);
        }
        let mut warnings = Vec::new();
        let path = layers.text("config").to_owned();
        if !path.is_empty() {
            let file = file::read(Path::new(&env.expand(&path)?))?;
            for (name, value) in file.values {
                layers.set(name, Source::Config, value);
            }
            warnings = file.warnings;
        }
        Ok(Self { layers, warnings })
    }

    /// Checks every value and gives it its type.
    pub fn settings(&self, env: &Env) -> Result<MeshSettings, ConfigError> {
        settings::check(&self.layers, env)
    }
}

/// The flags that were given, by name.
fn given(flags: &MeshFlags) -> Vec<(&'static str, String)> {
    let list = |values: &[String]| Some(values.join(",")).filter(|text| !text.is_empty());
    [
        ("config", &flags.config),
        ("socket", &flags.socket),
        ("state", &flags.state),
        ("tcp-frontend-host", &flags.tcp_frontend_host),
        ("tcp-frontend-min", &flags.tcp_frontend_min),
        ("tcp-frontend-max", &flags.tcp_frontend_max),
        ("lease-ttl", &flags.lease_ttl),
        ("frontend-idle-grace", &flags.frontend_idle_grace),
        ("shutdown-timeout", &flags.shutdown_timeout),
        ("also-bind", &list(&flags.also_bind)),
        ("allow-beyond-this-machine", &list(&flags.allow_beyond_this_machine)),
        ("metrics-bind", &flags.metrics_bind),
        ("docker-enabled", &flags.docker_enabled),
        ("docker-allow-non-loopback-published-ports", &flags.docker_allow_non_loopback_published_ports),
        ("http-enabled", &flags.http_enabled),
        ("http-addr", &flags.http_addr),
        ("https-addr", &flags.https_addr),
        ("http-base-domain", &flags.http_base_domain),
        ("http-cert-file", &flags.http_cert_file),
        ("http-key-file", &flags.http_key_file),
        ("http-certificates", &list(&flags.http_certificates)),
        ("http-access-log", &flags.http_access_log),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.clone().map(|value| (name, value)))
    .collect()
}

#[cfg(test)]
mod tests;
