//! The key that an SSH server proves to hold, whoever it is: for the server of this very host, which is asked at its own
//! address. Nothing else may believe what it says.
use super::config::Timing;
use super::connect;
use super::error::{LinkError, Stage};
use crate::fault::Class;
use crate::name::SshDestination;
use russh::client::{self, Config, Handler};
use russh::keys::{Algorithm, PublicKey, PublicKeyOrCertificate};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::timeout;

/// Keeps the key and goes no further.
struct Look(Arc<Mutex<Option<PublicKey>>>);

impl Handler for Look {
    type Error = russh::Error;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(PublicKey::from(offered.public_key().key_data().clone()));
        Ok(false)
    }
}

/// The key as `type base64`; ed25519 where the server has one.
///
/// # Errors
/// A server that is not reached, or is none.
pub async fn offered_key(destination: &SshDestination, timing: &Timing) -> Result<String, LinkError> {
    let port = destination.port.unwrap_or(22);
    let (stream, _) = connect::tcp(&destination.host, port, timing.connect).await?;
    let seen = Arc::default();
    let keys = vec![Algorithm::Ed25519, Algorithm::Ecdsa { curve: russh::keys::ssh_key::EcdsaCurve::NistP256 }];
    let preferred = russh::Preferred { key: Cow::Owned(keys), ..russh::Preferred::DEFAULT };
    let config = Arc::new(Config { preferred, ..Config::default() });
    let shaking = client::connect_stream(config, stream, Look(Arc::clone(&seen)));
    // It ends with an error, since the key is not taken.
    let ended = timeout(timing.handshake, shaking).await;
    let key = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    let key = key.and_then(|key| key.to_openssh().ok());
    key.ok_or_else(|| {
        let why = match ended {
            Err(_) => "no answer in time".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(_)) => "it offered no key".to_owned(),
        };
        LinkError::new(Stage::Handshake, Class::InfraDown, format!("the host key of {destination} is not known: {why}"))
    })
}
