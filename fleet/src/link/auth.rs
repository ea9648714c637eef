//! Authentication: certificates and keys of files, then the agent's, until the host takes one.
use super::agent::Agent;
use super::config::Timing;
use super::error::{LinkError, Stage, seconds};
use super::handler::{Facts, Watcher};
use super::keys::{self, FileKey};
use super::ssh_config::Route;
use crate::fault::Class;
use crate::name::SshDestination;
use russh::MethodKind;
use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_encoding::Encode;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg};
use std::sync::Arc;
use tokio::time::timeout;

/// Authenticates the route's login within the deadline of this stage.
pub(super) async fn authenticate(
    handle: &mut Handle<Watcher>,
    facts: &Facts,
    route: &Route,
    destination: &SshDestination,
    timing: &Timing,
) -> Result<(), LinkError> {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
    let user = route.user.as_str();
    let files = keys::read(&route.identity_files, now).await;
    let only = if route.identities_only { Some(keys::public(&route.identity_files).await) } else { None };
    let mut attempt = Attempt {
        handle,
        user,
        only,
        rsa_hash: None,
        tried: Vec::new(),
        refused: Vec::new(),
        skipped: files.skipped,
        missing: files.missing,
    };
    let outcome = timeout(timing.auth, attempt.run(&files.usable, route, timing)).await;
    let (class, why) = match outcome {
        Ok(Outcome::Accepted) => return Ok(()),
        Ok(Outcome::Refused) => (Class::Auth, attempt.summary()),
        Ok(Outcome::SessionEnded) => {
            let why = facts.ended().unwrap_or_else(|| "the host closed the connection".into());
            (Class::Auth, format!("{why}; {}", attempt.summary()))
        }
        Err(_) => (Class::Timeout, format!("no answer within {}", seconds(timing.auth))),
    };
    let sentence = format!("SSH authentication as {user} at {destination} failed: {why}");
    Err(LinkError::new(Stage::Auth, class, sentence))
}

enum Outcome {
    Accepted,
    Refused,
    SessionEnded,
}

struct Attempt<'a> {
    handle: &'a mut Handle<Watcher>,
    user: &'a str,
    /// Of the agent's keys these alone may be offered.
    only: Option<Vec<KeyData>>,
    /// Asked of the host once, when the first RSA key comes up.
    rsa_hash: Option<HashAlg>,
    tried: Vec<KeyData>,
    /// Keys that the host did not take.
    refused: Vec<String>,
    /// Keys that were not offered, and why.
    skipped: Vec<String>,
    /// Key files that are not there.
    missing: Vec<String>,
}

impl Attempt<'_> {
    async fn run(&mut self, files: &[FileKey], route: &Route, timing: &Timing) -> Outcome {
        for file in files {
            if let Some(end) = self.file(file).await {
                return end;
            }
        }
        let Some(socket) = &route.agent_socket else { return Outcome::Refused };
        let binding = self.handle.agent_session_binding();
        match Agent::connect(socket, binding, timing.agent).await {
            Ok((agent, identities)) => self.agent(agent, identities).await,
            Err(why) => {
                self.skipped.push(why);
                Outcome::Refused
            }
        }
    }

    async fn file(&mut self, file: &FileKey) -> Option<Outcome> {
        let name = file.file.display();
        let hash = self.hash_for(&file.key.algorithm()).await;
        if let Some(certificate) = &file.certificate {
            let mut signer = FileSigner(file.key.clone());
            let result =
                self.handle.authenticate_certificate_with(self.user, certificate.clone(), hash, &mut signer).await;
            if let Some(end) = self.settle(format!("{name}-cert.pub"), result.map_err(|e| e.to_string())) {
                return Some(end);
            }
        }
        self.tried.push(file.key.public_key().key_data().clone());
        let key = PrivateKeyWithHashAlg::new(file.key.clone(), hash);
        let result = self.handle.authenticate_publickey(self.user, key).await;
        self.settle(name.to_string(), result.map_err(|e| e.to_string()))
    }

    async fn agent(&mut self, mut agent: Agent, identities: Vec<AgentIdentity>) -> Outcome {
        for identity in identities {
            let public = identity.public_key().into_owned();
            if self.only.as_ref().is_some_and(|only| !only.contains(public.key_data())) {
                continue;
            }
            let hash = self.hash_for(&public.algorithm()).await;
            let (name, result) = match &identity {
                AgentIdentity::Certificate { certificate, comment } => {
                    let certificate = certificate.clone();
                    let name = format!("the agent's certificate {comment:?}");
                    (name, self.handle.authenticate_certificate_with(self.user, certificate, hash, &mut agent).await)
                }
                AgentIdentity::PublicKey { key, comment } => {
                    if self.tried.contains(key.key_data()) {
                        continue;
                    }
                    let name = format!("the agent's key {comment:?}");
                    (name, self.handle.authenticate_publickey_with(self.user, key.clone(), hash, &mut agent).await)
                }
            };
            if let Some(end) = self.settle(name, result.map_err(|e| e.to_string())) {
                return end;
            }
        }
        Outcome::Refused
    }

    /// SHA-1 is never used, even where a host offers nothing else.
    async fn hash_for(&mut self, algorithm: &Algorithm) -> Option<HashAlg> {
        if !matches!(algorithm, Algorithm::Rsa { .. }) {
            return None;
        }
        if self.rsa_hash.is_none() {
            let supported = self.handle.best_supported_rsa_hash().await;
            self.rsa_hash = Some(supported.ok().flatten().flatten().unwrap_or(HashAlg::Sha512));
        }
        self.rsa_hash
    }

    /// `None` when the next key may be tried.
    fn settle(&mut self, name: String, result: Result<AuthResult, String>) -> Option<Outcome> {
        match result {
            Ok(AuthResult::Success) => Some(Outcome::Accepted),
            Ok(AuthResult::Failure { remaining_methods, partial_success }) => {
                if partial_success {
                    self.refused.push(format!("{name} (the host asks for a second factor, which no one can give)"));
                } else {
                    self.refused.push(name);
                }
                if remaining_methods.is_empty() {
                    return Some(Outcome::SessionEnded);
                }
                (!remaining_methods.contains(&MethodKind::PublicKey)).then_some(Outcome::Refused)
            }
            Err(why) => {
                self.skipped.push(format!("{name}: {why}"));
                self.handle.is_closed().then_some(Outcome::SessionEnded)
            }
        }
    }

    fn summary(&self) -> String {
        let mut parts = Vec::new();
        if self.refused.is_empty() {
            parts.push("there is no key to offer".to_owned());
            parts.extend(self.missing.iter().cloned());
        } else {
            parts.push(format!("the host did not take {}", self.refused.join(", ")));
        }
        parts.extend(self.skipped.iter().cloned());
        parts.join("; ")
    }
}

/// Signs with a key read from a file. russh's own certificate method would sign an RSA certificate with SHA-1.
struct FileSigner(Arc<PrivateKey>);

#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error("the session ended")]
    Session(#[from] russh::SendError),
    #[error("the key does not sign: {0}")]
    Key(#[from] russh::keys::ssh_key::Error),
    #[error("the signature cannot be written: {0}")]
    Encoding(#[from] russh::keys::ssh_encoding::Error),
}

impl russh::Signer for FileSigner {
    type Error = SignError;
    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, SignError> {
        use russh::keys::signature::Signer;
        let signature = match self.0.key_data() {
            KeypairData::Rsa(pair) => (pair, hash).try_sign(&to_sign).map_err(russh::keys::ssh_key::Error::from)?,
            _ => self.0.as_ref().try_sign(&to_sign).map_err(russh::keys::ssh_key::Error::from)?,
        };
        let mut blob = Vec::new();
        signature.encode(&mut blob)?;
        blob.as_slice().encode(&mut to_sign)?;
        Ok(to_sign)
    }
}
