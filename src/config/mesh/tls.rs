//! Which certificates the HTTPS listener shows.
use super::{ConfigError, Env, Layers, wrong};
use stado_resolver::http::tls::{PairFiles, TlsSettings};
use std::path::Path;

/// The pair of the contract, the list of further ones, and the folder `tls` beside the state file for the authority.
pub(super) fn check(layers: &Layers, env: &Env, state: &Path) -> Result<TlsSettings, ConfigError> {
    let (cert, key) = (layers.text("http-cert-file"), layers.text("http-key-file"));
    let pair = match (cert, key) {
        ("", "") => None,
        _ => Some(PairFiles { cert: env.expand(cert)?, key: env.expand(key)? }),
    };
    let listed = layers.text("http-certificates").split(',').map(str::trim).filter(|part| !part.is_empty());
    let more = listed.map(|part| one(part, env)).collect::<Result<_, _>>()?;
    Ok(TlsSettings { pair, more, authority: state.parent().map(|dir| dir.join("tls")), ..TlsSettings::default() })
}

fn one(part: &str, env: &Env) -> Result<PairFiles, ConfigError> {
    match part.split_once(':') {
        Some((cert, key)) if !cert.is_empty() && !key.is_empty() => {
            Ok(PairFiles { cert: env.expand(cert)?, key: env.expand(key)? })
        }
        _ => wrong(format!("http.certificates: {part:?} is not a certificate and its key: write it as CERT:KEY")),
    }
}
