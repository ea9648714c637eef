//! What happens on the channels that were admitted: verbs and relays, each in its own task.
use super::handler::Permits;
use super::verbs::{self, Kind, Verb};
use super::{Caller, VerbOutput, Verbs};
use russh::server::{ChannelOpenHandle, Msg};
use russh::{Channel, ChannelMsg, ChannelOpenFailure, ChannelReadHalf, ChannelWriteHalf};
use stado_fleet::link::relay::{self, Grant};
use stado_fleet::link::{Carrier, ChannelStream};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Standard input of a verb; a registry is far smaller.
const INPUT: usize = 64 << 20;
/// What a host that joins says of itself.
const CANDIDATE: usize = 64 << 10;
/// For a verb's input to come whole.
const INPUT_DEADLINE: Duration = Duration::from_secs(60);
/// For a connection to a loopback endpoint.
const CONNECT: Duration = Duration::from_secs(10);
/// Relays of one client at a time.
const RELAYS: usize = 4096;
/// Channels that a session may close before it is renewed: each leaves 3.3 KiB in russh's table (`ssh-relay.md` §3.5).
const CLOSES: usize = 8192;
const BUFFER: usize = 64 * 1024;

/// One connected client, shared by the tasks of its channels.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) peer: SocketAddr,
    /// The gate waits for these when it closes.
    tasks: TaskTracker,
    /// Where verbs run.
    home: Handle,
    commands: AtomicUsize,
    relays: AtomicUsize,
    /// Channels that stay for as long as the session does and carry nothing by themselves: a multiplex, a watch.
    standing: AtomicUsize,
    /// Streams of multiplexes.
    streams: AtomicUsize,
    held: AtomicBool,
    closes: AtomicUsize,
    /// Receive window of its channels, once the distance is measured; 0 before.
    pub(super) window: AtomicU32,
    /// Cancelled when the session has ended: a relay that only waits for its service would not notice.
    pub(super) gone: CancellationToken,
    /// Asks the connection's task to look at [`Client::worn_out`].
    pub(super) changed: tokio::sync::Notify,
}

impl Client {
    pub(super) fn new(peer: SocketAddr, tasks: TaskTracker, home: Handle) -> Arc<Self> {
        let zero = || AtomicUsize::new(0);
        let (commands, relays, closes, standing, streams) = (zero(), zero(), zero(), zero(), zero());
        let (held, gone, changed) = (AtomicBool::new(false), CancellationToken::new(), tokio::sync::Notify::new());
        let window = AtomicU32::new(0);
        Arc::new(Self { peer, tasks, home, commands, relays, standing, streams, held, closes, window, gone, changed })
    }

    /// Commands that run now.
    pub(super) fn commands(&self) -> usize {
        self.commands.load(Ordering::Relaxed)
    }

    /// Whether a command that gives one answer runs now.
    pub(super) fn is_answering(&self) -> bool {
        self.commands() > self.standing.load(Ordering::Relaxed)
    }

    /// Whether the session has closed so many channels that it should end, now that none is open.
    pub(super) fn worn_out(&self) -> bool {
        self.closes.load(Ordering::Relaxed) >= CLOSES && self.open() == 0
    }

    /// Whether nothing is carried now.
    pub(super) fn is_idle(&self) -> bool {
        self.open() <= self.standing.load(Ordering::Relaxed) && self.streams.load(Ordering::Relaxed) == 0
    }

    fn open(&self) -> usize {
        self.commands.load(Ordering::Relaxed) + self.relays.load(Ordering::Relaxed)
    }
}

/// Counts a channel while it lives.
struct Counted {
    client: Arc<Client>,
    relay: bool,
}

impl Counted {
    fn new(client: Arc<Client>, relay: bool) -> Self {
        let counted = Self { client, relay };
        counted.counter().fetch_add(1, Ordering::Relaxed);
        counted
    }

    fn counter(&self) -> &AtomicUsize {
        if self.relay { &self.client.relays } else { &self.client.commands }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.counter().fetch_sub(1, Ordering::Relaxed);
        self.client.held.store(false, Ordering::Relaxed);
        self.client.changed.notify_one();
    }
}

impl Carrier for Counted {
    fn hold(&self) -> bool {
        let alone = self.client.open() == 1;
        self.client.held.store(alone, Ordering::Relaxed);
        alone
    }
    fn resume(&self) {
        self.client.held.store(false, Ordering::Relaxed);
    }
    fn closed_first(&self) {
        self.client.closes.fetch_add(1, Ordering::Relaxed);
    }
    /// As sshd does.
    fn closes(&self) -> bool {
        true
    }
    fn lost(&self) -> String {
        "the client's SSH session ended".into()
    }
}

/// Counts something else while it lives.
pub(super) struct Also {
    client: Arc<Client>,
    counter: fn(&Client) -> &AtomicUsize,
}

impl Also {
    /// A stream of a multiplex.
    pub(super) fn stream(client: Arc<Client>) -> Self {
        Self::new(client, |client| &client.streams)
    }

    fn standing(client: Arc<Client>) -> Self {
        Self::new(client, |client| &client.standing)
    }

    fn new(client: Arc<Client>, counter: fn(&Client) -> &AtomicUsize) -> Self {
        counter(&client).fetch_add(1, Ordering::Relaxed);
        Self { client, counter }
    }
}

impl Drop for Also {
    fn drop(&mut self) {
        (self.counter)(&self.client).fetch_sub(1, Ordering::Relaxed);
        self.client.changed.notify_one();
    }
}

/// Connects to `endpoint` and answers the open; then copies both ways until both ends are done. Half-closes are passed
/// on; a reset of either side resets the other. One whose grant ends is reset.
pub(super) fn direct(
    channel: Channel<Msg>,
    (endpoint, grant): (SocketAddr, Grant),
    reply: ChannelOpenHandle,
    client: Arc<Client>,
) {
    client.tasks.clone().spawn(async move {
        let counted = Counted::new(client, true);
        let refuse = |code, reason: String| ChannelOpenFailure::Other { code, reason };
        if counted.client.relays.load(Ordering::Relaxed) > RELAYS {
            let why = format!("stado gate: this client has {RELAYS} streams open");
            return reply.reject(refuse(4, why)).await;
        }
        let mut service = match timeout(CONNECT, TcpStream::connect(endpoint)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return reply.reject(refuse(2, format!("connect to {endpoint}: {error}"))).await,
            Err(_) => {
                let why = format!("connect to {endpoint}: no answer within {}s", CONNECT.as_secs());
                return reply.reject(refuse(2, why)).await;
            }
        };
        let _ = service.set_nodelay(true);
        reply.accept().await;
        let gone = counted.client.gone.clone();
        let mut remote = ChannelStream::new(channel, counted);
        let copying = tokio::io::copy_bidirectional_with_sizes(&mut remote, &mut service, BUFFER, BUFFER);
        let whole = tokio::select! {
            copied = copying => copied.is_ok(),
            () = gone.cancelled() => false,
            () = grant => false,
        };
        if !whole {
            // Closing with this set resets the connection; dropping `remote` unfinished resets the channel.
            let _ = socket2::SockRef::from(&service).set_linger(Some(Duration::ZERO));
        }
    });
}

/// Serves a multiplex on `channel` until the client leaves.
pub(super) fn multiplex(channel: Channel<Msg>, permits: Permits, client: Arc<Client>) {
    client.tasks.clone().spawn(async move {
        let (peer, gone) = (client.peer, client.gone.clone());
        let _standing = Also::standing(client.clone());
        let stream = ChannelStream::drained(channel, Counted::new(client, false));
        tokio::select! {
            served = relay::serve(stream, Arc::new(permits)) => if let Err(error) = served {
                tracing::info!(target: "stado::fleet", "stado gate: the relay for {peer} ended: {error}");
            },
            () = gone.cancelled() => {}
        }
    });
}

/// Tells the versions of the store on `channel` until the client leaves.
pub(super) fn watch(channel: Channel<Msg>, verbs: Arc<dyn Verbs>, client: Arc<Client>) {
    let (tasks, home) = (client.tasks.clone(), client.home.clone());
    let work = async move {
        let gone = client.gone.clone();
        let _standing = Also::standing(client.clone());
        let stream = ChannelStream::new(channel, Counted::new(client, false));
        tokio::select! {
            () = verbs.watch(stream) => {}
            () = gone.cancelled() => {}
        }
    };
    tasks.spawn_on(work, &home);
}

/// Runs a verb and sends what it said.
pub(super) fn run(channel: Channel<Msg>, (verb, caller): (Verb, Caller), verbs: Arc<dyn Verbs>, client: Arc<Client>) {
    let (tasks, home) = (client.tasks.clone(), client.home.clone());
    let work = async move {
        let counted = Counted::new(client, false);
        let (mut reader, writer) = channel.split();
        let output = match input(&mut reader, most(verb.kind)).await {
            Ok(stdin) => match verb.kind {
                Kind::Admit => verbs.admit(&caller, stdin).await,
                Kind::Leave => verbs.leave(&caller).await,
                _ => verbs.run(&verb.argv, stdin).await,
            },
            Err(why) => {
                VerbOutput { stderr: format!("stado gate: {why}\n").into_bytes(), status: 1, ..VerbOutput::default() }
            }
        };
        answer(reader, &writer, output).await;
        counted.closed_first();
    };
    tasks.spawn_on(work, &home);
}

/// Answers a command that is not run.
pub(super) fn refuse(channel: Channel<Msg>, sentence: String, client: Arc<Client>) {
    client.tasks.clone().spawn(async move {
        let counted = Counted::new(client, false);
        let (reader, writer) = channel.split();
        let output = VerbOutput { stderr: sentence.into_bytes(), status: verbs::REFUSED, ..VerbOutput::default() };
        answer(reader, &writer, output).await;
        counted.closed_first();
    });
}

/// How much a verb reads.
fn most(kind: Kind) -> usize {
    match kind {
        Kind::AnswerToInput => INPUT,
        Kind::Admit => CANDIDATE,
        _ => 0,
    }
}

async fn input(reader: &mut ChannelReadHalf, most: usize) -> Result<Vec<u8>, String> {
    let mut stdin = Vec::new();
    if most == 0 {
        return Ok(stdin);
    }
    let whole = async {
        loop {
            match reader.wait().await {
                Some(ChannelMsg::Data { data }) if stdin.len() + data.len() <= most => stdin.extend_from_slice(&data),
                Some(ChannelMsg::Data { .. }) => return Err(format!("the input is larger than {most} bytes")),
                Some(ChannelMsg::Eof) => return Ok(()),
                // Half an input must never be taken for a whole one.
                Some(ChannelMsg::Close) | None => return Err("the input was cut off".into()),
                Some(_) => {}
            }
        }
    };
    match timeout(INPUT_DEADLINE, whole).await {
        Ok(whole) => whole.map(|()| stdin),
        Err(_) => Err(format!("the input did not end within {}s", INPUT_DEADLINE.as_secs())),
    }
}

/// Sends output, status, end and close, while what still comes in is dropped.
async fn answer(mut reader: ChannelReadHalf, writer: &ChannelWriteHalf<Msg>, output: VerbOutput) {
    let send = async {
        writer.data_bytes(output.stdout).await?;
        writer.extended_data_bytes(1, output.stderr).await?;
        writer.exit_status(output.status).await?;
        writer.eof().await
    };
    let gone = async { while !matches!(reader.wait().await, Some(ChannelMsg::Close) | None) {} };
    tokio::select! {
        _ = send => {}
        () = gone => return,
    }
    // First: the session's task must not be stuck on the full queue of this channel.
    drop(reader);
    let _ = writer.close().await;
}
