//! Which engine is meant: `DOCKER_HOST`, the chosen context, or the usual sockets of this machine, in this order, as the
//! `docker` command decides. Asked again at every attempt: contexts and sockets change while the daemon runs.
use super::endpoint::Endpoint;
use super::engine::EngineError;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use stado_fleet::fault::Class;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the environment says. The command line reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    /// `DOCKER_HOST`.
    pub host: Option<String>,
    /// `DOCKER_CONTEXT`.
    pub context: Option<String>,
    /// `DOCKER_TLS_VERIFY` is set.
    pub tls: bool,
    /// `DOCKER_CONFIG`, else `~/.docker`.
    pub config_dir: Option<PathBuf>,
    /// Sockets to try when nothing is chosen, in order of preference.
    pub sockets: Vec<PathBuf>,
}

/// The engine's usual sockets on a machine: the system's, a user's own (rootless), Docker Desktop's, Podman's.
pub fn usual_sockets(home: Option<&Path>, runtime_dir: Option<&Path>) -> Vec<PathBuf> {
    let mut all = vec![PathBuf::from("/var/run/docker.sock")];
    all.extend(runtime_dir.map(|dir| dir.join("docker.sock")));
    all.extend(home.map(|home| home.join(".docker/run/docker.sock")));
    all.extend(runtime_dir.map(|dir| dir.join("podman/podman.sock")));
    all.push("/run/podman/podman.sock".into());
    all
}

#[derive(Deserialize, Default)]
struct CliConfig {
    #[serde(default, rename = "currentContext")]
    current_context: String,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "Endpoints", default)]
    endpoints: BTreeMap<String, MetaEndpoint>,
}

#[derive(Deserialize)]
struct MetaEndpoint {
    #[serde(rename = "Host", default)]
    host: String,
}

impl Lookup {
    /// Finds the engine.
    pub fn find(&self) -> Result<Endpoint, EngineError> {
        if let Some(host) = self.host.as_deref().filter(|host| !host.is_empty()) {
            return match parse(host, "DOCKER_HOST")? {
                Endpoint::Tcp { .. } if self.tls => Err(wrong(format!(
                    "DOCKER_HOST is {host:?} with DOCKER_TLS_VERIFY: TLS is not served, use ssh:// or a local socket"
                ))),
                endpoint => Ok(endpoint),
            };
        }
        match self.chosen_context()? {
            Some(context) => self.of_context(&context),
            None => Ok(Endpoint::Unix(self.first_socket())),
        }
    }

    /// The chosen context; `None` for the default one.
    fn chosen_context(&self) -> Result<Option<String>, EngineError> {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty() && name != "default");
        if let Some(context) = self.context.as_deref().filter(|context| !context.is_empty()) {
            return Ok(named(context));
        }
        let Some(file) = self.config_dir.as_ref().map(|dir| dir.join("config.json")) else { return Ok(None) };
        match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(format!("{} cannot be read: {error}", file.display()))),
            Ok(bytes) => {
                let config: CliConfig = serde_json::from_slice(&bytes)
                    .map_err(|error| wrong(format!("{} is not what docker writes: {error}", file.display())))?;
                Ok(named(&config.current_context))
            }
        }
    }

    fn of_context(&self, context: &str) -> Result<Endpoint, EngineError> {
        let missing =
            |why: String| wrong(format!("docker context {context:?} {why}; `docker context ls` shows what there is"));
        let dir =
            self.config_dir.as_ref().ok_or_else(|| missing("is chosen, and there is no home to find it in".into()))?;
        let file = dir.join("contexts/meta").join(hex::encode(Sha256::digest(context))).join("meta.json");
        let bytes = std::fs::read(&file).map_err(|error| missing(format!("cannot be read: {error}")))?;
        let meta: Meta = serde_json::from_slice(&bytes).map_err(|error| missing(format!("is malformed: {error}")))?;
        let host = meta.endpoints.get("docker").map(|e| e.host.as_str()).filter(|host| !host.is_empty());
        parse(host.ok_or_else(|| missing("names no engine".into()))?, &format!("docker context {context:?}"))
    }

    fn first_socket(&self) -> PathBuf {
        let exists = self.sockets.iter().find(|path| path.exists());
        exists.or(self.sockets.first()).cloned().unwrap_or_else(|| "/var/run/docker.sock".into())
    }
}

fn parse(text: &str, from: &str) -> Result<Endpoint, EngineError> {
    text.parse().map_err(|reason| wrong(format!("{from} is {text:?}: {reason}")))
}

fn wrong(sentence: String) -> EngineError {
    EngineError { sentence, class: Class::Config }
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
