//! Requests to a cluster: each member in turn for what may be asked twice, one alone for a write that was sent.
use super::config::EtcdConfig;
use super::login::Login;
use super::shapes::{Token, Trouble};
use crate::fault::Class;
use crate::store::http::{Answer, Ask, Deadlines, Lost, Origin, Reply, exchange, open};
use crate::store::local::LARGEST;
use http::{HeaderValue, header};
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A value is a third larger in base64, and has a head around it.
const ANSWER: u64 = LARGEST * 4 / 3 + (1 << 20);
/// How much of an answer a sentence repeats.
const QUOTED: usize = 300;

/// A request that brought no answer that could be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) class: Class,
    /// Whether a write may have been made all the same.
    pub(super) unknown: bool,
    /// Whether another member may do better.
    elsewhere: bool,
    /// Whether a new login may help: the request was not carried out.
    login: bool,
}

impl Failed {
    /// Nothing was done, and asking another member would not help.
    pub(super) fn said(class: Class, why: impl Into<String>) -> Self {
        Self { why: why.into(), class, unknown: false, elsewhere: false, login: false }
    }

    fn lost(lost: Lost) -> Self {
        Self { unknown: lost.sent, elsewhere: true, ..Self::said(lost.class, lost.why) }
    }
}

/// The members of a cluster, and the token that one of them gave.
#[derive(Debug)]
pub(super) struct Gateway {
    config: EtcdConfig,
    login: Option<Login>,
    /// The member that answered last.
    first: AtomicUsize,
    token: Mutex<Option<String>>,
}

impl Gateway {
    pub(super) fn new(config: EtcdConfig, login: Option<Login>) -> Self {
        Self { config, login, first: AtomicUsize::new(0), token: Mutex::default() }
    }

    /// How long one read or write may take.
    pub(super) fn timeout(&self) -> Duration {
        self.config.timeout
    }

    /// Asks until a member answers.
    pub(super) async fn read<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failed> {
        self.ask(path, body, false).await
    }

    /// Asks once: a member that could not be reached is passed over, one that was sent the request is the last.
    pub(super) async fn write<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failed> {
        self.ask(path, body, true).await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str, body: &Value, write: bool) -> Result<T, Failed> {
        let mut causes: Vec<Failed> = Vec::new();
        for (at, member) in self.in_turn() {
            match self.one(member, path, body).await {
                Ok(reply) => {
                    self.first.store(at, Ordering::Relaxed);
                    return serde_json::from_slice(&reply.body).map_err(|e| {
                        let why = format!("the answer of {member} to {path} is not readable: {e}");
                        Failed { unknown: write, ..Failed::said(Class::Refused, why) }
                    });
                }
                Err(failed) if (write && failed.unknown) || !failed.elsewhere => {
                    // The next request begins with another member.
                    self.first.store(at + 1, Ordering::Relaxed);
                    return Err(Failed { unknown: write && failed.unknown, ..failed });
                }
                Err(failed) => causes.push(failed),
            }
        }
        Err(every_member(causes))
    }

    /// The members, the one that answered last before the others.
    fn in_turn(&self) -> impl Iterator<Item = (usize, &Origin)> {
        let members = &self.config.members;
        let first = self.first.load(Ordering::Relaxed) % members.len().max(1);
        members.iter().enumerate().cycle().skip(first).take(members.len())
    }

    /// Each member has its part of the time, so that a mute one leaves the others theirs.
    fn deadlines(&self) -> Deadlines {
        let members = u32::try_from(self.config.members.len().max(1)).unwrap_or(u32::MAX);
        let part = (self.config.timeout / members).max(Duration::from_millis(50));
        Deadlines { connect: part, silence: part }
    }

    async fn one(&self, member: &Origin, path: &str, body: &Value) -> Result<Reply, Failed> {
        let first = self.with_token(member, path, body).await;
        match first {
            Err(failed) if failed.login && self.login.is_some() => {
                self.forget();
                self.with_token(member, path, body).await
            }
            ended => ended,
        }
    }

    async fn with_token(&self, member: &Origin, path: &str, body: &Value) -> Result<Reply, Failed> {
        let ask = self.request(member, path, body).await?;
        let reply = exchange(member, &self.config.tls, self.deadlines(), ask).await.map_err(Failed::lost)?;
        if reply.status == 200 { Ok(reply) } else { Err(refused(member, &reply)) }
    }

    /// Opens a stream of lines on the first member that gives one.
    pub(super) async fn stream(&self, path: &str, body: &Value) -> Result<Answer, Failed> {
        let mut causes = Vec::new();
        for (at, member) in self.in_turn() {
            let opened = async {
                let ask = self.request(member, path, body).await?;
                let answer = open(member, &self.config.tls, self.deadlines(), ask).await.map_err(Failed::lost)?;
                if answer.status == 200 {
                    return Ok(answer);
                }
                Err(refused(member, &answer.all(1 << 20).await.map_err(Failed::lost)?))
            };
            match opened.await {
                Ok(answer) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(failed) => {
                    if failed.login {
                        self.forget();
                    }
                    causes.push(failed);
                }
            }
        }
        Err(every_member(causes))
    }

    /// The next request begins with another member.
    pub(super) fn pass_on(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    async fn request(&self, member: &Origin, path: &str, body: &Value) -> Result<Ask, Failed> {
        let ask = plain(path, body);
        match self.token(member).await? {
            None => Ok(ask),
            Some(token) => ask.secret(header::AUTHORIZATION, &token).map_err(|e| Failed::said(Class::Refused, e)),
        }
    }

    fn forget(&self) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A token, where this host logs in.
    async fn token(&self, member: &Origin) -> Result<Option<String>, Failed> {
        let Some(login) = self.login.clone() else { return Ok(None) };
        if let Some(token) = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(Some(token));
        }
        if !self.config.private {
            let why = "a password is not sent over a line that others may read; use etcds://";
            return Err(Failed::said(Class::Config, why));
        }
        let read = tokio::task::spawn_blocking(move || login.read()).await;
        let read = read.unwrap_or_else(|e| Err(e.to_string()));
        let (user, password) = read.map_err(|why| Failed::said(Class::Config, why))?;
        let ask = plain("/v3/auth/authenticate", &json!({"name": user, "password": password.reveal()}));
        let reply = exchange(member, &self.config.tls, self.deadlines(), ask).await;
        // Whatever came of the login, the request itself was not sent.
        let reply = reply.map_err(|lost| Failed { unknown: false, ..Failed::lost(lost) })?;
        if reply.status != 200 {
            let failed = refused(member, &reply);
            let class = if failed.elsewhere { failed.class } else { Class::Auth };
            return Err(Failed {
                unknown: false,
                login: false,
                class,
                why: format!("login as {user}: {}", failed.why),
                ..failed
            });
        }
        let token = serde_json::from_slice::<Token>(&reply.body);
        let token =
            token.map_err(|e| Failed::said(Class::Refused, format!("login as {user} gave no token: {e}")))?.token;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(Some(token))
    }
}

fn plain(path: &str, body: &Value) -> Ask {
    let mut ask = Ask::new(Method::POST, path, usize::try_from(ANSWER).unwrap_or(usize::MAX));
    ask.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ask.body = body.to_string().into();
    ask
}

/// One sentence of all causes; the class of the last.
fn every_member(causes: Vec<Failed>) -> Failed {
    let why: Vec<&str> = causes.iter().map(|failed| failed.why.as_str()).collect();
    let why = match why.as_slice() {
        [] => "it has no members".to_owned(),
        [only] => (*only).to_owned(),
        all => format!("no member answered ({})", all.join("; ")),
    };
    let class = causes.last().map_or(Class::Config, |failed| failed.class);
    Failed { elsewhere: true, ..Failed::said(class, why) }
}

/// What a status that is no success means. The gateway's codes are those of gRPC.
fn refused(member: &Origin, reply: &Reply) -> Failed {
    let trouble: Trouble = serde_json::from_slice(&reply.body).unwrap_or_default();
    let said = trouble.message.or_else(|| Some(trouble.error?.as_str()?.to_owned()));
    let said = said.unwrap_or_else(|| String::from_utf8_lossy(&reply.body).into_owned());
    let said: String = said.trim().chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let hint = match said.as_str() {
        s if s.contains("request is too large") => {
            "; raise --max-request-bytes there, or keep this registry in another store"
        }
        s if s.contains("user name is empty") => "; it asks for a login: name one in storage.etcd.credentials_file",
        s if s.contains("database space exceeded") => "; compact and defragment it, and disarm its alarm",
        _ => "",
    };
    let why = format!("etcd at {member} says: {said}{hint}");
    let (class, unknown, elsewhere, login) = match (trouble.code, reply.status) {
        // A deadline that passed there, or a member without a leader: the write may be made all the same.
        (Some(1 | 4), _) => (Class::Timeout, true, true, false),
        (Some(14), _) => (Class::InfraDown, true, true, false),
        (Some(16), _) => (Class::Auth, false, false, true),
        // An older release says so of a token that it does not know.
        (Some(3), _) if said.contains("invalid auth token") => (Class::Auth, false, false, true),
        (Some(7), _) => (Class::Auth, false, false, false),
        (Some(8), _) => (Class::Refused, false, false, false),
        // Nobody in particular, or somebody else.
        (Some(3), _) if said.contains("user name is empty") || said.contains("authentication failed") => {
            (Class::Auth, false, false, false)
        }
        (Some(3 | 9), _) => (Class::Refused, false, false, false),
        (_, 401 | 403) => (Class::Auth, false, false, false),
        (_, 404) => (Class::Config, false, true, false),
        (_, 400..500) => (Class::Refused, false, false, false),
        _ => (Class::InfraDown, true, true, false),
    };
    Failed { why, class, unknown, elsewhere, login }
}
