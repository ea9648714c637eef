//! What a client may ask for. Nothing here waits for the own session or for anything slow: russh's task stands still
//! meanwhile, and every channel of the client with it (`ssh-relay.md` §3.6, issue 5).
use super::channels::{self, Client};
use super::verbs::{Kind, Verb};
use super::{Caller, Came, Shared, verbs};
use russh::keys::{Algorithm, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, MethodKind, MethodSet};
use stado_fleet::link::relay::{Admit, Admitting, Code, Explaining, Grant, Refusal, channel_window};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

/// Session channels of one client at a time, and those that wait for a command.
const SESSIONS: usize = 16;

/// Admits one client.
pub(super) struct Admission {
    shared: Arc<Shared>,
    client: Arc<Client>,
    permits: Permits,
    /// Session channels that have no command yet.
    waiting: HashMap<ChannelId, Channel<Msg>>,
}

impl Admission {
    pub(super) fn new(shared: Arc<Shared>, client: Arc<Client>, key: watch::Sender<Option<Came>>) -> Self {
        let permits = Permits { shared: shared.clone(), client: client.clone(), key };
        Self { shared, client, permits, waiting: HashMap::new() }
    }

    /// Who this is, if it may come in.
    async fn judge(&self, key: &PublicKey, algorithm: &Algorithm) -> Option<Came> {
        // SHA-1 signatures are not taken.
        if matches!(algorithm, Algorithm::Rsa { hash: None }) {
            return None;
        }
        // A key that was added a moment ago comes in.
        self.shared.keys.refresh().await;
        let key = key.key_data();
        if self.shared.limits(key).is_some() {
            return Some(Came { key: key.clone(), guest: false });
        }
        self.shared.verbs.is_invited(key).await.then(|| Came { key: key.clone(), guest: true })
    }

    fn is_guest(&self) -> bool {
        self.permits.key.borrow().as_ref().is_none_or(|came| came.guest)
    }

    fn caller(&self) -> Caller {
        let key = self.permits.key.borrow().as_ref().map(|came| PublicKey::from(came.key.clone()));
        let key = key.and_then(|key| key.to_openssh().ok()).unwrap_or_default();
        Caller { key, peer: self.client.peer }
    }

    /// Answers a request that came with a channel.
    fn refuse(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), russh::Error> {
        session.channel_failure(channel)
    }

    fn say(&mut self, id: ChannelId, sentence: String, session: &mut Session) -> Result<(), russh::Error> {
        match self.waiting.remove(&id) {
            None => session.channel_failure(id),
            Some(channel) => {
                session.channel_success(id)?;
                channels::refuse(channel, sentence, self.client.clone());
                Ok(())
            }
        }
    }
}

/// Passwords and the like are never asked for.
pub(super) fn public_key_only() -> MethodSet {
    [MethodKind::PublicKey].as_slice().into()
}

fn rejected() -> Auth {
    Auth::Reject { proceed_with_methods: Some(public_key_only()), partial_success: false }
}

fn refusal(code: u32, reason: impl Into<String>) -> ChannelOpenFailure {
    ChannelOpenFailure::Other { code, reason: reason.into() }
}

impl Handler for Admission {
    type Error = russh::Error;

    async fn auth_none(&mut self, _: &str) -> Result<Auth, russh::Error> {
        Ok(Auth::Reject { proceed_with_methods: Some(public_key_only()), partial_success: false })
    }

    async fn auth_publickey_offered(&mut self, _: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, russh::Error> {
        Ok(if self.judge(offer.public_key, offer.algorithm).await.is_some() { Auth::Accept } else { rejected() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        let Some(came) = self.judge(key.public_key, key.algorithm).await else { return Ok(rejected()) };
        let print = key.public_key.fingerprint(russh::keys::HashAlg::Sha256);
        tracing::debug!(target: "stado::fleet", "stado gate: {} came in as {user} with {print}", self.client.peer);
        self.permits.key.send_replace(Some(came));
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        if self.client.commands() + self.waiting.len() >= SESSIONS {
            reply.reject(refusal(4, format!("stado gate: {SESSIONS} commands are running already"))).await;
            return Ok(());
        }
        self.waiting.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        match candidates(host, port) {
            Err(why) => reply.reject(refusal(1, format!("stado gate: {why}"))).await,
            Ok(candidates) => {
                let (permits, client) = (self.permits.clone(), self.client.clone());
                tokio::spawn(async move {
                    match permits.first(&candidates).await {
                        Ok((endpoint, grant)) => channels::direct(channel, (endpoint, grant), reply, client),
                        Err(why) => reply.reject(refusal(1, format!("stado gate: {why}"))).await,
                    }
                });
            }
        }
        Ok(())
    }

    /// Asked for whenever a window is refilled: a far client gets more of it.
    fn adjust_window(&mut self, _: ChannelId, current: u32) -> u32 {
        current.max(self.client.window.load(Ordering::Relaxed))
    }

    async fn channel_close(&mut self, channel: ChannelId, _: &mut Session) -> Result<(), russh::Error> {
        self.waiting.remove(&channel);
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, command: &[u8], session: &mut Session) -> Result<(), russh::Error> {
        match verbs::parse(command) {
            Err(sentence) => self.say(id, sentence, session),
            Ok(verb) if self.is_guest() && verb.kind != Kind::Admit => self.say(id, verbs::GUEST.to_owned(), session),
            Ok(verb) => match self.waiting.remove(&id) {
                None => session.channel_failure(id),
                Some(channel) => {
                    session.channel_success(id)?;
                    self.start(channel, verb);
                    Ok(())
                }
            },
        }
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut Session) -> Result<(), russh::Error> {
        self.say(id, verbs::refusal("it gives no shell"), session)
    }

    async fn subsystem_request(&mut self, id: ChannelId, _: &str, session: &mut Session) -> Result<(), russh::Error> {
        self.refuse(id, session)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.refuse(id, session)
    }

    async fn x11_request(
        &mut self,
        id: ChannelId,
        _: bool,
        _: &str,
        _: &str,
        _: u32,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.refuse(id, session)
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.refuse(id, session)
    }
}

impl Admission {
    fn start(&self, channel: Channel<Msg>, verb: Verb) {
        let client = self.client.clone();
        let caller = self.caller();
        match verb.kind {
            Kind::Relay => channels::multiplex(channel, self.permits.clone(), client),
            Kind::Watch => channels::watch(channel, self.shared.verbs.clone(), client),
            Kind::Answer | Kind::AnswerToInput | Kind::Admit | Kind::Leave => {
                channels::run(channel, (verb, caller), self.shared.verbs.clone(), client);
            }
        }
    }
}

/// What the key of one client may reach, now.
#[derive(Clone)]
pub(super) struct Permits {
    shared: Arc<Shared>,
    client: Arc<Client>,
    /// Tells the connection's task which key came in.
    key: watch::Sender<Option<Came>>,
}

impl Admit for Permits {
    fn admit(&self, endpoint: SocketAddr) -> Admitting<'_> {
        Box::pin(async move {
            let answer = self.first(&[endpoint]).await;
            answer.map(|(_, grant)| grant).map_err(|why| Refusal::new(Code::Forbidden, format!("stado gate: {why}")))
        })
    }

    fn why_ended(&self, endpoint: SocketAddr, client: SocketAddr) -> Explaining<'_> {
        self.shared.verbs.why_ended(endpoint, client)
    }

    fn counted(&self) -> Option<Box<dyn Send>> {
        Some(Box::new(channels::Also::stream(self.client.clone())))
    }

    fn measured(&self, rtt: std::time::Duration) {
        self.client.window.store(channel_window(rtt), Ordering::Relaxed);
    }
}

/// The loopback endpoints that `host:port` may stand for.
fn candidates(host: &str, port: u32) -> Result<Vec<SocketAddr>, String> {
    let port = u16::try_from(port).ok().filter(|p| *p != 0).ok_or_else(|| format!("{port} is no port"))?;
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![([127, 0, 0, 1], port).into(), (std::net::Ipv6Addr::LOCALHOST, port).into()]);
    }
    let ip = host.parse::<std::net::IpAddr>().ok().filter(std::net::IpAddr::is_loopback);
    ip.map(|ip| vec![SocketAddr::new(ip, port)]).ok_or_else(|| format!("{host} is no loopback address"))
}

impl Permits {
    /// The first of `candidates` that this client may open. A client may have heard of a change before this host has: what
    /// is not allowed is asked for once more when the directory was read again.
    async fn first(&self, candidates: &[SocketAddr]) -> Result<(SocketAddr, Grant), String> {
        let allowed = || {
            let mut why = "there is no such endpoint".to_owned();
            for endpoint in candidates {
                match self.lend(*endpoint) {
                    Ok(grant) => return Ok((*endpoint, grant)),
                    Err(refused) => why = refused,
                }
            }
            Err(why)
        };
        match allowed() {
            Ok(lent) => Ok(lent),
            Err(_) => {
                self.shared.verbs.renew().await;
                allowed()
            }
        }
    }

    fn lend(&self, endpoint: SocketAddr) -> Result<Grant, String> {
        let came = self.key.borrow().clone().filter(|came| !came.guest);
        let gone = "the key may no longer come in";
        let came = came.ok_or(gone)?;
        let limits = self.shared.limits(&came.key).ok_or(gone)?;
        if limits.endpoints.as_ref().is_some_and(|only| !only.contains(&endpoint)) {
            return Err(format!("the line of this key in authorized_keys does not permit {endpoint}"));
        }
        self.shared.verbs.lend(&came.key, endpoint)
    }
}
