//! What a session's task tells us: the host key to judge, the text of a refused open, why the session ended.
use super::error::{LinkError, Stage};
use super::known_hosts::{KnownHosts, Rejection, remember};
use crate::fault::Class;
use russh::client::{DisconnectReason, Handler, Session};
use russh::keys::PublicKeyOrCertificate;
use russh::{ChannelId, ChannelOpenFailure};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Shared between a session's task and those who use the session.
#[derive(Debug, Default)]
pub(super) struct Facts {
    rejection: Mutex<Option<Rejection>>,
    refusals: Mutex<VecDeque<(ChannelOpenFailure, String)>>,
    refused: Notify,
    ended: Mutex<Option<String>>,
    /// Told once, when the session has ended.
    pub(super) end: tokio_util::sync::CancellationToken,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Facts {
    /// Why the host key was not accepted, when that ended the handshake.
    pub(super) fn rejection(&self) -> Option<LinkError> {
        let rejection = lock(&self.rejection).take()?;
        Some(LinkError::new(Stage::HostKey, Class::Auth, rejection.sentence()))
    }

    /// Why the session ended.
    pub(super) fn ended(&self) -> Option<String> {
        lock(&self.ended).clone()
    }

    /// Records the reason unless an earlier one stands, and tells those who wait.
    pub(super) fn end_with(&self, why: &str) {
        lock(&self.ended).get_or_insert_with(|| why.to_owned());
        self.end.cancel();
    }

    /// The server's own words for an open that failed with `reason`. russh gives the opener the code first and the
    /// text to the handler a moment later, without saying which open it belongs to: texts of the same code are taken
    /// in the order of their arrival (all channels of a session lead to the same endpoint).
    pub(super) async fn refusal_text(&self, reason: &ChannelOpenFailure) -> Option<String> {
        loop {
            let told = self.refused.notified();
            {
                let mut refusals = lock(&self.refusals);
                let found = refusals.iter().position(|(code, _)| same_code(code, reason));
                if let Some((_, text)) = found.and_then(|i| refusals.remove(i)) {
                    return Some(text).filter(|t| !t.is_empty());
                }
            }
            tokio::select! {
                () = told => {}
                () = self.end.cancelled() => return None,
                () = tokio::time::sleep(std::time::Duration::from_millis(500)) => return None,
            }
        }
    }
}

fn same_code(a: &ChannelOpenFailure, b: &ChannelOpenFailure) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Judges the host key and fills in the [`Facts`].
pub(super) struct Watcher {
    pub(super) facts: Arc<Facts>,
    pub(super) known: KnownHosts,
    pub(super) host: String,
    pub(super) port: u16,
    /// Where the key of a host that is not listed is written down.
    pub(super) accept_new: Option<PathBuf>,
}

impl Watcher {
    /// Writes an unlisted host's key down, where the account's configuration asks for that.
    fn accept(&self, offered: &PublicKeyOrCertificate, rejection: Rejection) -> Result<(), Rejection> {
        let (Some(file), Rejection::Unknown(sentence)) = (&self.accept_new, &rejection) else { return Err(rejection) };
        let key = offered.public_key();
        if let Err(error) = remember(file, &self.host, self.port, &key) {
            return Err(Rejection::Unknown(format!(
                "{sentence}; it could not be added to {}: {error}",
                file.display()
            )));
        }
        let print = key.fingerprint(russh::keys::HashAlg::Sha256);
        tracing::warn!(
            target: "stado::fleet",
            "stado link: the host key {print} of {} was not known and is now in {} (StrictHostKeyChecking accept-new)",
            self.host, file.display()
        );
        Ok(())
    }
}

impl Handler for Watcher {
    type Error = russh::Error;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
        let judged = self.known.of(&self.host, self.port).judge(offered, now);
        match judged.or_else(|rejection| self.accept(offered, rejection)) {
            Ok(()) => Ok(true),
            Err(rejection) => {
                *lock(&self.facts.rejection) = Some(rejection);
                Ok(false)
            }
        }
    }

    async fn channel_open_failure(
        &mut self,
        _: ChannelId,
        reason: ChannelOpenFailure,
        description: &str,
        _: &str,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        let mut refusals = lock(&self.facts.refusals);
        refusals.push_back((reason, description.to_owned()));
        // Texts that nobody fetches (their openers are gone) must not pile up.
        if refusals.len() > 256 {
            refusals.pop_front();
        }
        drop(refusals);
        self.facts.refused.notify_waiters();
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<russh::Error>) -> Result<(), russh::Error> {
        let why = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                format!("the host ended it: {}", info.message.trim())
            }
            DisconnectReason::Error(russh::Error::KeepaliveTimeout) => "the host answered no keepalive".into(),
            DisconnectReason::Error(russh::Error::InactivityTimeout) => "nothing came from the host any more".into(),
            DisconnectReason::Error(russh::Error::Disconnect | russh::Error::HUP) => "the host closed it".into(),
            DisconnectReason::Error(error) => error.to_string(),
        };
        self.facts.end_with(&why);
        match reason {
            DisconnectReason::ReceivedDisconnect(_) => Ok(()),
            DisconnectReason::Error(error) => Err(error),
        }
    }
}

impl Drop for Watcher {
    /// The session's task owns the watcher: it has ended, whichever way.
    fn drop(&mut self) {
        self.facts.end_with("it was closed here");
    }
}
