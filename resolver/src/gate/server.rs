//! The gate's accept loop and the life of one connection.
use super::channels::Client;
use super::handler::{Admission, public_key_only};
use super::keys::Keys;
use super::strangers::{Stranger, Strangers};
use super::{Came, Config, GateError, Shared, Verbs, host_key};
use russh::server::RunningSession;
use stado_fleet::link::threads::Threads;
use std::borrow::Cow;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// From accept to authenticated.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After an accept that failed for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);
/// For a host that joins, from its coming to its welcome.
const GUEST: Duration = Duration::from_secs(120);
/// For a command to give its answer when the key under which it runs is gone.
const ANSWER: Duration = Duration::from_millis(500);
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_MAX: usize = 3;

/// A standing gate. Dropping it ends it.
#[derive(Debug)]
pub struct Gate {
    local: SocketAddr,
    stop: CancellationToken,
    leave: CancellationToken,
    tasks: TaskTracker,
    listener: Weak<TcpListener>,
}

impl Gate {
    /// Binds, reads or makes the host key, and serves.
    pub async fn start(config: Config, verbs: Arc<dyn Verbs>) -> Result<Self, GateError> {
        let bind = |source| GateError::Bind { addr: config.bind, source };
        let listener = TcpListener::bind(config.bind).await.map_err(bind)?;
        Self::start_on(Arc::new(listener), config, verbs).await
    }

    /// The same on a listener that is bound already.
    pub async fn start_on(
        listener: Arc<TcpListener>,
        config: Config,
        verbs: Arc<dyn Verbs>,
    ) -> Result<Self, GateError> {
        let bind = |source| GateError::Bind { addr: config.bind, source };
        let key = host_key::read_or_make(&config.host_key)?;
        let local = listener.local_addr().map_err(bind)?;
        let keys = Keys::open(config.authorized_keys).await;
        let print = key.public_key().fingerprint(russh::keys::HashAlg::Sha256);
        tracing::info!(target: "stado::fleet", "stado gate at {local} host key {print}");
        let gate = Self {
            local,
            stop: CancellationToken::new(),
            leave: CancellationToken::new(),
            tasks: TaskTracker::new(),
            listener: Arc::downgrade(&listener),
        };
        let server = Server {
            config: Arc::new(server_config(key)),
            shared: Arc::new(Shared { verbs, keys }),
            strangers: Strangers::default(),
            stop: gate.stop.clone(),
            leave: gate.leave.clone(),
            tasks: gate.tasks.clone(),
            home: Handle::current(),
            threads: Threads::for_each_processor("stado-gate"),
        };
        // Beside the tasks that are waited for: it ends with the gate.
        tokio::spawn(server.serve(listener));
        Ok(gate)
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The listener, to hand it over to another process.
    pub fn lend(&self) -> Option<Arc<TcpListener>> {
        self.listener.upgrade()
    }

    /// Another process has the listener: stops accepting, and ends each session once nothing is carried on it. Its client
    /// comes back to the other process.
    pub fn leave(&self) {
        self.leave.cancel();
    }

    /// Sessions, streams and commands that are open now.
    pub fn open(&self) -> usize {
        self.tasks.len()
    }

    /// Stops accepting, ends every session and waits until they are gone. Verbs that were started run to their end.
    pub async fn close(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(HANDSHAKE, self.tasks.wait()).await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn server_config(key: russh::keys::PrivateKey) -> russh::server::Config {
    use russh::cipher::{AES_128_GCM, AES_256_CTR, AES_256_GCM, CHACHA20_POLY1305};
    russh::server::Config {
        server_id: russh::SshId::Standard(Cow::Borrowed(concat!("SSH-2.0-StadoGate_", env!("CARGO_PKG_VERSION")))),
        methods: public_key_only(),
        // Nothing here can be guessed by timing: keys are public.
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![key],
        // As in the link: a rekey that this side starts under busy uploads ends the session.
        limits: russh::Limits {
            rekey_write_limit: usize::MAX,
            rekey_read_limit: usize::MAX,
            rekey_time_limit: Duration::MAX,
        },
        preferred: russh::Preferred {
            cipher: Cow::Borrowed(&[AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, AES_256_CTR]),
            compression: Cow::Borrowed(&[russh::compression::NONE]),
            ..russh::Preferred::DEFAULT
        },
        inactivity_timeout: Some(KEEPALIVE * 5),
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: KEEPALIVE_MAX,
        nodelay: true,
        ..russh::server::Config::default()
    }
}

#[derive(Clone)]
struct Server {
    config: Arc<russh::server::Config>,
    shared: Arc<Shared>,
    strangers: Strangers,
    stop: CancellationToken,
    leave: CancellationToken,
    tasks: TaskTracker,
    /// Where the gate was started: what verbs have to compute must hold up no stream.
    home: Handle,
    /// Each session lives on one of these, with its streams.
    threads: Threads,
}

impl Server {
    async fn serve(self, listener: Arc<TcpListener>) {
        let keys = self.shared.keys.clone();
        let follow = keys.follow();
        tokio::pin!(follow);
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.leave.cancelled() => break,
                () = &mut follow => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.admit(stream, peer),
                    Err(error) => pause_after(&error).await,
                },
            }
        }
        drop(listener);
        // Keys that are revoked end the sessions that are left.
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = &mut follow => {}
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let stranger = self.strangers.enter(peer.ip().to_canonical());
        let server = self.clone();
        let runtime = self.threads.of(self.threads.turn()).unwrap_or_else(|| self.home.clone());
        // One that cannot be watched elsewhere is out of memory: it is cut.
        let Ok(stream) = stream.into_std() else { return };
        let life = async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            if let Some(connection) = server.meet(stream, peer, stranger).await {
                connection.live(&server).await;
            }
        };
        self.tasks.spawn_on(life, &runtime);
    }

    /// Authenticates, unless its place is needed before that.
    async fn meet(&self, stream: TcpStream, peer: SocketAddr, stranger: Stranger) -> Option<Connection> {
        tokio::select! {
            biased;
            connection = self.authenticate(stream, peer) => connection,
            () = stranger.has_to_go() => None,
        }
    }

    async fn authenticate(&self, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
        let until = Instant::now() + HANDSHAKE;
        let socket = tune(&stream)?;
        let cut = Cut { socket };
        let client = Client::new(peer, self.tasks.clone(), self.home.clone());
        let (tell, mut key) = watch::channel(None);
        let admission = Admission::new(self.shared.clone(), client.clone(), tell);
        let starting = russh::server::run_stream(self.config.clone(), stream, admission);
        let session = timeout_at(until, starting).await.ok()?.ok()?;
        let mut connection = Connection { session, client, came: None, since: Instant::now(), cut };
        tokio::select! {
            () = self.stop.cancelled() => None,
            _ = &mut connection.session => None,
            known = timeout_at(until, key.wait_for(Option::is_some)) => {
                connection.came = known.ok()?.ok()?.clone();
                Some(connection)
            }
        }
    }
}

/// Shuts the socket down when the connection's task ends, whatever russh's task is doing then.
struct Cut {
    socket: socket2::Socket,
}
impl Drop for Cut {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// An authenticated client.
struct Connection {
    session: RunningSession<Admission>,
    client: Arc<Client>,
    came: Option<Came>,
    since: Instant,
    cut: Cut,
}

impl Connection {
    /// Until the client leaves, its key is revoked or expires, or the gate stops.
    async fn live(mut self, server: &Server) {
        let _gone = self.client.gone.clone().drop_guard();
        let handle = self.session.handle();
        let mut keys = server.shared.keys.current();
        let mut leaving = false;
        let why = loop {
            // Asked for first: what changes from here on is seen below.
            let membership = server.shared.verbs.membership();
            keys.mark_unchanged();
            let expiry = match self.still_known(&server.shared) {
                Ok(expiry) => expiry,
                Err(why) => break why,
            };
            tokio::select! {
                _ = &mut self.session => return,
                () = server.stop.cancelled() => break "the gate is closing",
                changed = keys.changed() => if changed.is_err() { break "the gate is closing" },
                () = membership => {}
                () = tokio::time::sleep(expiry) => {}
                () = self.client.changed.notified() => if self.client.worn_out() { break "the session is renewed" },
                () = server.leave.cancelled(), if !leaving => leaving = true,
            }
            if leaving && self.client.is_idle() {
                break "another daemon serves this gate now";
            }
        };
        self.last_answer().await;
        tracing::info!(target: "stado::fleet", "stado gate: session of {} ended: {why}", self.client.peer);
        let goodbye = handle.disconnect(russh::Disconnect::ByApplication, format!("stado gate: {why}"), String::new());
        let _ = timeout(Duration::from_millis(200), goodbye).await;
        let _ = timeout(Duration::from_millis(200), &mut self.session).await;
        drop(self.cut);
    }

    /// A host that leaves the fleet takes its own key away, and is told so first.
    async fn last_answer(&self) {
        let until = Instant::now() + ANSWER;
        while self.client.is_answering() && Instant::now() < until {
            tokio::select! {
                () = self.client.changed.notified() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// How long the key may stay, as things are now.
    fn still_known(&self, shared: &Shared) -> Result<Duration, &'static str> {
        let gone = "its key may no longer come in";
        let came = self.came.as_ref().ok_or(gone)?;
        if came.guest {
            let left = GUEST.saturating_sub(self.since.elapsed());
            return if left.is_zero() { Err("an invitation stays no longer") } else { Ok(left) };
        }
        let limits = shared.limits(&came.key).ok_or(gone)?;
        let now = jiff::Timestamp::now().as_second();
        let left = limits.expires.map_or(i64::MAX, |at| at.saturating_sub(now)).clamp(0, 3600);
        Ok(Duration::from_secs(u64::try_from(left).unwrap_or(0).max(1)))
    }
}

fn tune(stream: &TcpStream) -> Option<socket2::Socket> {
    let socket = socket2::SockRef::from(stream);
    let keepalive =
        socket2::TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(Duration::from_secs(20)));
    socket.try_clone().ok()
}

/// An accept that failed must not end the gate, nor spin: without descriptors it fails at once, again and again.
async fn pause_after(error: &std::io::Error) {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    if error.raw_os_error().is_some_and(|code| exhausted.iter().any(|e| e.raw_os_error() == code)) {
        tracing::warn!(target: "stado::fleet", "stado gate: cannot accept: {error}");
        tokio::time::sleep(PAUSE).await;
    }
}
