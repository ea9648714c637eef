//! One SSH session: TCP, key exchange, host key, authentication, each with its own deadline and sentence.
use super::auth;
use super::config::{LinkConfig, Timing};
use super::connect;
use super::error::{LinkError, Stage, seconds};
use super::handler::{Facts, Watcher, lock};
use super::known_hosts::{KnownHosts, Wanted};
use super::liveness::{Heard, Watched};
use super::stream::Carrier;
use crate::fault::Class;
use crate::name::{ConnectionPath, SshDestination};
use russh::client::{self, Config, Handle};
use std::borrow::Cow;
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Channels closed by us before the peer closed them stay in russh's table (3.3 KiB each); past this many the session
/// takes no new channels and ends with its last one.
pub(super) const FORCED_CLOSES: usize = 512;

/// An authenticated session. Everything about its users is in `load`.
pub(super) struct Session {
    pub(super) handle: Handle<Watcher>,
    pub(super) facts: Arc<Facts>,
    pub(super) heard: Arc<Heard>,
    /// Told once, when it takes no new channels any more.
    pub(super) retired: CancellationToken,
    /// Path that carries it.
    pub(super) path: String,
    /// Destination as declared, for sentences.
    pub(super) destination: SshDestination,
    socket: socket2::Socket,
    load: Mutex<Load>,
    forced: AtomicUsize,
    since: Instant,
}

#[derive(Debug)]
struct Load {
    /// Channels open or opening.
    channels: usize,
    /// The only stream's reader is behind, so its channel is not read (see `hold`).
    held: bool,
    /// Takes no new channels.
    retired: bool,
    /// This side ends it.
    closed_here: bool,
    idle_since: Instant,
}

/// A session takes no new channels past this age. russh is told never to start a rekey, so keys are renewed by renewing
/// sessions wherever the other side starts none either.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("path", &self.path).field("load", &self.load).finish_non_exhaustive()
    }
}

/// Opens a session over one path.
pub(super) async fn establish(path: &ConnectionPath, config: &LinkConfig) -> Result<Session, LinkError> {
    let destination = &path.destination;
    let port = destination.port.unwrap_or(22);
    let stream = connect::tcp(&destination.host, port, config.timing.connect).await?;
    let socket = socket2::SockRef::from(&stream).try_clone().map_err(|error| {
        LinkError::new(Stage::Connect, Class::InfraDown, format!("no descriptor for {destination}: {error}"))
    })?;
    let known = KnownHosts::read(&config.known_hosts).await;
    let wanted = known.of(&destination.host, port).wanted();
    let facts = Arc::new(Facts::default());
    let watcher = Watcher { facts: facts.clone(), known, host: destination.host.clone(), port };
    let guard = Cut { socket: Some(&socket) };
    let heard = Heard::new();
    let stream = Watched::new(stream, heard.clone());
    let mut handle = handshake(stream, &heard, watcher, wanted, destination, &config.timing).await?;
    let user = destination.user.as_deref().unwrap_or(&config.user);
    auth::authenticate(&mut handle, &facts, user, destination, config).await?;
    guard.keep();
    Ok(Session {
        handle,
        facts,
        heard,
        retired: CancellationToken::new(),
        path: path.name.clone(),
        destination: destination.clone(),
        socket,
        load: Mutex::new(Load {
            channels: 0,
            held: false,
            retired: false,
            closed_here: false,
            idle_since: Instant::now(),
        }),
        forced: AtomicUsize::new(0),
        since: Instant::now(),
    })
}

/// Shuts the socket down unless the session came to stand: russh's task would otherwise stay in a handshake that
/// nobody waits for.
struct Cut<'a> {
    socket: Option<&'a socket2::Socket>,
}
impl Cut<'_> {
    fn keep(mut self) {
        self.socket = None;
    }
}
impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if let Some(socket) = self.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

async fn handshake(
    stream: Watched<tokio::net::TcpStream>,
    heard: &Heard,
    watcher: Watcher,
    wanted: Wanted,
    destination: &SshDestination,
    timing: &Timing,
) -> Result<Handle<Watcher>, LinkError> {
    let facts = watcher.facts.clone();
    // Fewer system calls: a session reads many small packets.
    let stream = tokio::io::BufReader::with_capacity(256 * 1024, stream);
    let connecting = client::connect_stream(Arc::new(client_config(wanted, timing)), stream, watcher);
    tokio::pin!(connecting);
    let early = tokio::select! {
        biased;
        done = &mut connecting => Some(done),
        () = heard.named() => None,
        () = tokio::time::sleep(timing.banner) => return Err(unnamed(destination, heard, Some(timing.banner))),
    };
    let done = match early {
        Some(done) => done,
        None => timeout(timing.handshake, connecting).await.map_err(|_| {
            let why = format!("no answer within {}", seconds(timing.handshake));
            exchange_failed(destination, Class::Timeout, &why)
        })?,
    };
    done.map_err(|error| match facts.rejection() {
        Some(rejection) => rejection,
        None if !heard.has_name() => unnamed(destination, heard, None),
        None => {
            let class = if ended(&error) { Class::RateLimit } else { Class::InfraDown };
            exchange_failed(destination, class, &explain(&error))
        }
    })
}

fn exchange_failed(destination: &SshDestination, class: Class, why: &str) -> LinkError {
    LinkError::new(Stage::Handshake, class, format!("the SSH handshake with {destination} failed: {why}"))
}

/// The host did not say its name: it is mute, busy, or speaks something else.
fn unnamed(destination: &SshDestination, heard: &Heard, waited: Option<Duration>) -> LinkError {
    let said = heard.instead();
    let busy = said.as_ref().is_none_or(|said| said.contains("MaxStartups") || said.contains("Not allowed"));
    let (class, why) = match (waited, said) {
        (Some(waited), None) => (
            Class::Timeout,
            format!(
                "it took the connection and sent no SSH identification within {}: its sshd is stopped or overloaded, or \
                 something else listens there",
                seconds(waited)
            ),
        ),
        (None, None) => (
            Class::RateLimit,
            "the host closed the connection without an SSH identification (a busy sshd does so beyond its MaxStartups)"
                .to_owned(),
        ),
        (_, Some(said)) if busy => (
            Class::RateLimit,
            format!("the host turned the connection away: it said {said}; see its sshd's MaxStartups"),
        ),
        (_, Some(said)) => (Class::Config, format!("what answers there is no SSH server: it said {said}")),
    };
    LinkError::new(Stage::Banner, class, format!("the SSH handshake with {destination} failed: {why}"))
}

/// How sshd turns away what is beyond its MaxStartups, when it has said its name already.
fn ended(error: &russh::Error) -> bool {
    use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
    match error {
        russh::Error::Disconnect | russh::Error::HUP => true,
        russh::Error::IO(error) => matches!(error.kind(), ConnectionReset | UnexpectedEof),
        _ => false,
    }
}

fn explain(error: &russh::Error) -> String {
    match error {
        error if ended(error) => "the host closed the connection (a busy sshd does so beyond its MaxStartups)".into(),
        russh::Error::NoCommonAlgo { kind, ours, theirs } => format!(
            "no common {kind:?} algorithm: this host accepts {}, the other offers {}",
            ours.join(","),
            theirs.join(",")
        ),
        other => other.to_string(),
    }
}

fn client_config(wanted: Wanted, timing: &Timing) -> Config {
    use russh::cipher::{AES_128_CTR, AES_128_GCM, AES_192_CTR, AES_256_CTR, AES_256_GCM, CHACHA20_POLY1305};
    let preferred = russh::Preferred {
        key: Cow::Owned(wanted.keys),
        host_key_certificates: Cow::Owned(wanted.certificates),
        cipher: Cow::Borrowed(&[AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, AES_256_CTR, AES_192_CTR, AES_128_CTR]),
        compression: Cow::Borrowed(&[russh::compression::NONE]),
        ..russh::Preferred::DEFAULT
    };
    Config {
        client_id: russh::SshId::Standard(Cow::Borrowed(concat!("SSH-2.0-Stado_", env!("CARGO_PKG_VERSION")))),
        // A rekey that we start under busy downloads ends the session (`ssh-relay.md` §3.5): the other side starts them.
        limits: russh::Limits {
            rekey_write_limit: usize::MAX,
            rekey_read_limit: usize::MAX,
            rekey_time_limit: Duration::MAX,
        },
        preferred,
        inactivity_timeout: Some(timing.silence()),
        keepalive_interval: Some(timing.keepalive),
        keepalive_max: timing.keepalive_max,
        nodelay: true,
        ..Config::default()
    }
}

impl Session {
    /// Reserves a place for one channel, unless the session has ended or takes no more.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Seat> {
        let mut load = lock(&self.load);
        if load.held || load.retired || self.since.elapsed() > MAX_AGE || self.has_ended() {
            return None;
        }
        load.channels += 1;
        Some(Seat { session: self.clone() })
    }

    /// Whether no channel can be opened any more.
    pub(super) fn has_ended(&self) -> bool {
        self.handle.is_closed() || self.facts.end.is_cancelled()
    }

    /// Takes no new channels; ends with its last one.
    pub(super) fn retire(&self) {
        lock(&self.load).retired = true;
        self.retired.cancel();
    }

    /// Whether any sign of life comes within `deadline`.
    pub(super) async fn probe(&self, deadline: Duration) -> bool {
        let before = self.heard.bytes();
        let answered = matches!(timeout(deadline, self.handle.send_ping()).await, Ok(Ok(())));
        (answered || self.heard.bytes() > before) && !self.has_ended()
    }

    /// Waits for what the host shall answer; `None` when the session turns out to be dead meanwhile. The host is asked for a
    /// sign of life when nothing at all has come for a while.
    pub(super) async fn answers<T>(&self, timing: &Timing, answer: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(answer);
        loop {
            let before = self.heard.bytes();
            if let Ok(answer) = timeout(timing.probe, &mut answer).await {
                return Some(answer);
            }
            if self.heard.bytes() > before {
                continue;
            }
            tokio::select! {
                answer = &mut answer => return Some(answer),
                alive = self.probe(timing.probe) => if !alive { return None },
            }
        }
    }

    /// The sentence for a session that gave no sign of life when asked.
    pub(super) fn mute(&self) -> String {
        let silent = Duration::from_secs(self.heard.silent_for().as_secs());
        format!(
            "the SSH session to {} was lost: the host gave no sign of life for {}",
            self.destination,
            seconds(silent)
        )
    }

    /// How long no channel has been open; `None` while one is.
    pub(super) fn idle(&self) -> Option<Duration> {
        let load = lock(&self.load);
        (load.channels == 0).then(|| load.idle_since.elapsed())
    }

    /// Whether it ended, and not because this side closed it.
    pub(super) fn ended_by_itself(&self) -> bool {
        self.has_ended() && !lock(&self.load).closed_here
    }

    /// Ends the session now, whatever its task is doing.
    pub(super) fn cut(&self, why: &str) {
        self.retire();
        self.facts.end_with(why);
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Says goodbye, then ends the session.
    pub(super) async fn close(&self) {
        self.retire();
        lock(&self.load).closed_here = true;
        let goodbye = self.handle.disconnect(russh::Disconnect::ByApplication, "", "");
        let _ = timeout(Duration::from_millis(200), goodbye).await;
        let ended = self.facts.end.cancelled();
        let _ = timeout(Duration::from_millis(300), ended).await;
        self.cut("it was closed here");
    }

    /// The sentence for streams that a lost session takes with it.
    pub(super) fn lost(&self) -> String {
        let why = self.facts.ended().unwrap_or_else(|| "it ended".into());
        format!("the SSH session to {} was lost: {why}", self.destination)
    }
}

/// A channel's place in its session; given back on drop.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) session: Arc<Session>,
}

impl Carrier for Seat {
    fn hold(&self) -> bool {
        let mut load = lock(&self.session.load);
        load.held = load.channels == 1;
        load.held
    }

    /// Until then the session takes no other channel.
    fn resume(&self) {
        lock(&self.session.load).held = false;
    }

    fn closed_first(&self) {
        if self.session.forced.fetch_add(1, Ordering::Relaxed) + 1 >= FORCED_CLOSES {
            self.session.retire();
        }
    }

    /// As OpenSSH's client does.
    fn closes(&self) -> bool {
        false
    }

    fn lost(&self) -> String {
        self.session.lost()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut load = lock(&self.session.load);
        load.channels = load.channels.saturating_sub(1);
        load.held = false;
        load.idle_since = Instant::now();
        if load.channels == 0 && load.retired {
            load.closed_here = true;
            let _ = self.session.socket.shutdown(Shutdown::Both);
        }
    }
}
