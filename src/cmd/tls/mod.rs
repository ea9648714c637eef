//! `stado tls …`: the authority of this person's own, and who trusts it.
mod export;
mod init;
mod status;
mod stores;
mod trust;

pub(crate) use export::export;
pub(crate) use init::init;
pub(crate) use status::status;
pub(crate) use trust::trust;

use crate::args::{MeshFlags, TlsPlace};
use crate::config::{ConfigError, Env, MeshLayers, MeshSettings};
use crate::exit::Failure;
use serde_json::json;
use stado_resolver::http::tls::TlsSettings;
use stado_resolver::http::tls::authority::{self, AuthorityFacts};
use std::path::PathBuf;

/// What the daemon would be started with.
fn mesh(place: &TlsPlace, env: &Env) -> Result<MeshSettings, ConfigError> {
    let flags = MeshFlags { config: place.config.clone(), state: place.state.clone(), ..MeshFlags::default() };
    MeshLayers::read(&flags, env)?.settings(env)
}

/// The same, as far as it concerns certificates.
fn settings(place: &TlsPlace, env: &Env) -> Result<TlsSettings, ConfigError> {
    Ok(mesh(place, env)?.tls)
}

/// The folder of the authority.
fn folder(place: &TlsPlace, env: &Env) -> Result<PathBuf, Failure> {
    settings(place, env)?.authority.ok_or_else(|| Failure::config("the state file has no folder: pass --state"))
}

/// The authority, or what to do without one.
fn authority(place: &TlsPlace, env: &Env) -> Result<(PathBuf, AuthorityFacts), Failure> {
    let folder = folder(place, env)?;
    match authority::read(&folder)? {
        Some(facts) => Ok((folder, facts)),
        None => Err(Failure::not_found(format!("there is no authority in {}: `stado tls init`", folder.display()))),
    }
}

fn describe(folder: &std::path::Path, facts: &AuthorityFacts, state: Option<&str>) -> serde_json::Value {
    json!({
        "state": state,
        "folder": folder.display().to_string(),
        "certificate": folder.join(authority::CERT).display().to_string(),
        "subject": facts.subject,
        "fingerprint": facts.fingerprint,
        "not_after": facts.not_after.to_string(),
        "domains": authority::DOMAINS,
    })
}
