//! The router while one daemon after another takes over, and while one is started again: nobody is refused, no answer is cut,
//! WebSockets and event streams go on.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::http::{get, http, register};
use crate::support::process::Process;
use crate::support::{PATIENCE, ports, wait_until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const HOST: &str = "web.localhost";

/// Answers with the path; `/ws` returns every byte after a handshake, `/events` counts. Until the test ends.
fn backend() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that is gone ends its own connection.
            thread::spawn(move || drop(answer(stream)));
        }
    });
    port
}

fn answer(mut stream: std::net::TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line);
        }
        let path = head[0].split(' ').nth(1).unwrap();
        match path {
            "/ws" => {
                stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                )?;
                let mut part = [0; 1024];
                loop {
                    match reader.read(&mut part)? {
                        0 => return Ok(()),
                        n => stream.write_all(&part[..n])?,
                    }
                }
            }
            "/events" => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
                )?;
                for n in 0.. {
                    let event = format!("data: {n}\n\n");
                    stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
                    thread::sleep(Duration::from_millis(2));
                }
            }
            _ => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
                stream.write_all((head + path).as_bytes())?;
            }
        }
    }
}

/// What all clients have seen.
#[derive(Default)]
struct Seen {
    over: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    wrong: Mutex<Vec<String>>,
}

impl Seen {
    fn goes_on(&self) -> bool {
        !self.over.load(Relaxed)
    }
    fn count(&self, kind: &'static str) {
        *self.counts.lock().unwrap().entry(kind).or_default() += 1;
    }
    fn wrong(&self, kind: &str, what: impl std::fmt::Debug) {
        self.wrong.lock().unwrap().push(format!("{kind}: {what:?}"));
    }
    /// Waits until each kind has gone `more` steps further.
    fn flows(&self, kinds: usize, more: usize) {
        let before = self.counts.lock().unwrap().clone();
        wait_until("everything flows", PATIENCE, || {
            let now = self.counts.lock().unwrap();
            let wrong = self.wrong.lock().unwrap();
            assert!(wrong.is_empty(), "{} of them: {:?}; {now:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
            now.len() == kinds && now.iter().all(|(kind, n)| *n >= before.get(kind).copied().unwrap_or(0) + more)
        });
    }
}

trait Both: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}
type Stream = BufStream<Box<dyn Both>>;

/// A way into the router.
#[derive(Clone)]
struct Door {
    port: u16,
    tls: Option<TlsConnector>,
}

impl Door {
    async fn open(&self) -> io::Result<Box<dyn Both>> {
        let tcp = TcpStream::connect(("127.0.0.1", self.port)).await?;
        Ok(match &self.tls {
            None => Box::new(tcp),
            Some(tls) => Box::new(tls.connect(ServerName::try_from(HOST).unwrap(), tcp).await?),
        })
    }
}

/// `work`, which has to end.
async fn soon<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn line(stream: &mut Stream) -> io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

/// Sends a request; the head of the answer in lower case.
async fn begin(stream: &mut Stream, path: &str, more: &str) -> io::Result<String> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n{more}\r\n").as_bytes()).await?;
    stream.flush().await?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head += &line(stream).await?.to_ascii_lowercase();
    }
    Ok(head)
}

/// The body of an answer, and whether the connection ends behind it.
async fn ask(stream: &mut Stream, path: &str) -> io::Result<(String, bool)> {
    let head = begin(stream, path, "").await?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap_or("0").parse().unwrap()];
    stream.read_exact(&mut body).await?;
    Ok((String::from_utf8_lossy(&body).into_owned(), head.contains("\r\nconnection: close\r\n")))
}

/// A connection for each request.
async fn new_connections(kind: &'static str, door: Door, seen: Arc<Seen>) {
    for n in 0.. {
        if !seen.goes_on() {
            return;
        }
        let path = format!("/{n}");
        match soon(async { ask(&mut BufStream::new(door.open().await?), &path).await }).await {
            Ok((body, _)) if body == path => seen.count(kind),
            other => seen.wrong(kind, other),
        }
    }
}

/// One connection after the other, each for as many requests as it may have.
async fn kept_connections(kind: &'static str, door: Door, seen: Arc<Seen>) {
    let mut n = 0;
    while seen.goes_on() {
        let mut stream = match soon(door.open()).await {
            Ok(stream) => BufStream::new(stream),
            Err(error) => return seen.wrong(kind, error),
        };
        while seen.goes_on() {
            n += 1;
            let path = format!("/{n}");
            match soon(ask(&mut stream, &path)).await {
                Ok((body, closes)) if body == path => {
                    seen.count(kind);
                    if closes {
                        break;
                    }
                }
                other => return seen.wrong(kind, other),
            }
        }
    }
}

/// One WebSocket from the beginning to the end.
async fn websocket(kind: &'static str, door: Door, seen: Arc<Seen>) {
    let life = async {
        let mut stream = BufStream::new(door.open().await?);
        let head = soon(begin(&mut stream, "/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n")).await?;
        if !head.starts_with("http/1.1 101 ") {
            return Err(io::Error::other(head));
        }
        for n in 0.. {
            if !seen.goes_on() {
                break;
            }
            let message = format!("{n:08}");
            stream.write_all(message.as_bytes()).await?;
            stream.flush().await?;
            let mut back = [0; 8];
            soon(stream.read_exact(&mut back)).await?;
            if back != message.as_bytes() {
                return Err(io::Error::other(format!("{back:?} instead of {n}")));
            }
            seen.count(kind);
        }
        Ok(())
    };
    if let Err(error) = life.await {
        seen.wrong(kind, error);
    }
}

/// Counts along; the numbers have to follow each other.
#[derive(Default)]
struct Events {
    held: String,
    next: usize,
}

impl Events {
    /// How many of them are in `text`, which may end anywhere.
    fn take(&mut self, text: &str) -> io::Result<usize> {
        self.held += text;
        let before = self.next;
        while let Some((event, rest)) = self.held.split_once("\n\n") {
            if event.trim_start() != format!("data: {}", self.next) {
                return Err(io::Error::other(format!("{event:?} instead of {}", self.next)));
            }
            self.next += 1;
            self.held = rest.to_owned();
        }
        Ok(self.next - before)
    }
}

/// One event stream from the beginning to the end.
async fn event_stream(kind: &'static str, door: Door, seen: Arc<Seen>) {
    let life = async {
        let mut stream = BufStream::new(door.open().await?);
        soon(begin(&mut stream, "/events", "")).await?;
        let mut events = Events::default();
        while seen.goes_on() {
            let line = soon(line(&mut stream)).await?;
            // What lies between are the sizes of chunks and their ends.
            if line.starts_with("data: ") && events.take(&format!("{line}\n"))? == 1 {
                seen.count(kind);
            }
        }
        Ok::<_, io::Error>(())
    };
    if let Err(error) = life.await {
        seen.wrong(kind, error);
    }
}

async fn session(door: &Door) -> io::Result<h2::client::SendRequest<bytes::Bytes>> {
    let (send, connection) = h2::client::handshake(door.open().await?).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(send)
}

fn request(path: &str) -> http::Request<()> {
    http::Request::get(format!("http://{HOST}{path}")).body(()).unwrap()
}

/// The next piece of a body; `None` at its end.
async fn piece(body: &mut h2::RecvStream) -> Result<Option<String>, h2::Error> {
    let Some(data) = body.data().await.transpose()? else { return Ok(None) };
    let _ = body.flow_control().release_capacity(data.len());
    Ok(Some(String::from_utf8_lossy(&data).into_owned()))
}

/// Streams of HTTP/2, one after the other, on connections that last until the router says goodbye.
async fn streams(kind: &'static str, door: Door, seen: Arc<Seen>) {
    let mut n = 0;
    while seen.goes_on() {
        let mut send = match soon(session(&door)).await {
            Ok(send) => send,
            Err(error) => return seen.wrong(kind, error),
        };
        while seen.goes_on() {
            n += 1;
            let path = format!("/{n}");
            // Before a request is sent, an error says no more than that another connection is to be opened.
            let Ok(ready) = send.ready().await else { break };
            send = ready;
            let Ok((response, _)) = send.send_request(request(&path), true) else { break };
            let answer = async {
                let mut body = response.await?.into_body();
                let mut all = String::new();
                while let Some(more) = piece(&mut body).await? {
                    all += &more;
                }
                Ok::<_, h2::Error>(all)
            };
            match timeout(PATIENCE, answer).await {
                Ok(Ok(body)) if body == path => seen.count(kind),
                // The router says that it has not looked at this one.
                Ok(Err(error)) if error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) => break,
                other => return seen.wrong(kind, other),
            }
        }
    }
}

/// One event stream in HTTP/2 from the beginning to the end.
async fn event_stream_h2(kind: &'static str, door: Door, seen: Arc<Seen>) {
    let life = async {
        let mut send = session(&door).await?.ready().await.map_err(io::Error::other)?;
        let (response, _) = send.send_request(request("/events"), true).map_err(io::Error::other)?;
        let mut body = response.await.map_err(io::Error::other)?.into_body();
        let mut events = Events::default();
        while seen.goes_on() {
            let more = soon(async { piece(&mut body).await.map_err(io::Error::other) }).await?;
            let more = more.ok_or(io::ErrorKind::UnexpectedEof)?;
            for _ in 0..events.take(&more)? {
                seen.count(kind);
            }
        }
        Ok::<_, io::Error>(())
    };
    if let Err(error) = life.await {
        seen.wrong(kind, error);
    }
}

/// A client that trusts the authority of `home`.
fn connector(home: &Home, alpn: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let pem = home.read(".config/devmesh/tls/ca.pem");
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

#[test]
fn hand_overs_under_load_break_no_request_no_websocket_and_no_event_stream() {
    const ROUNDS: usize = 8;
    let (home, lease) = (Home::new(), ports::block(2));
    home.stado(&["tls", "init"]).ok();
    let addresses = [lease.port(), lease.last()].map(|port| format!("127.0.0.1:{port}"));
    let [http, https] = &addresses;
    let args =
        ["resolver", "serve", "--docker-enabled=false", "--http-enabled", "--http-addr", http, "--https-addr", https];
    let mut first = home.start("resolver-0", STADO, &args);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(first.ended().is_none(), "{}", first.log());
        home.devmesh(&["health"]).code == 0
    });
    register(&home, "web", backend(), &[]);

    let clear = Door { port: lease.port(), tls: None };
    let tls = Door { port: lease.last(), tls: Some(connector(&home, &[])) };
    let h2 = Door { port: lease.last(), tls: Some(connector(&home, &["h2"])) };
    let (seen, runtime) = (Arc::new(Seen::default()), tokio::runtime::Runtime::new().unwrap());
    let go = || seen.clone();
    let clients = [
        runtime.spawn(new_connections("new", clear.clone(), go())),
        runtime.spawn(new_connections("new over TLS", tls.clone(), go())),
        runtime.spawn(kept_connections("kept", clear.clone(), go())),
        runtime.spawn(kept_connections("kept over TLS", tls.clone(), go())),
        runtime.spawn(streams("HTTP/2 in clear", clear.clone(), go())),
        runtime.spawn(streams("HTTP/2 over TLS", h2.clone(), go())),
        runtime.spawn(websocket("WebSocket", clear.clone(), go())),
        runtime.spawn(websocket("WebSocket over TLS", tls, go())),
        runtime.spawn(event_stream("events", clear, go())),
        runtime.spawn(event_stream_h2("events in HTTP/2 over TLS", h2, go())),
    ];
    seen.flows(clients.len(), 5);
    let mut generations: Vec<Process> = Vec::new();
    for round in 1..=ROUNDS {
        let mut next = home.start(&format!("resolver-{round}"), STADO, &[&args[..], &["--take-over"]].concat());
        next.expect("took over from the daemon with pid");
        seen.flows(clients.len(), 5);
        generations.push(next);
    }
    assert!(first.ended().is_none(), "it lives until its last stream ends");
    let status = home.stado(&["resolver", "status", "--json"]).json();
    let leaving = status["leaving"].as_array().unwrap();
    let streams = leaving.iter().find(|one| one["pid"] == first.pid()).map(|one| one["streams"].as_u64().unwrap());
    assert!(streams.unwrap() >= 4, "two WebSockets and two event streams: {status}");
    seen.over.store(true, Relaxed);
    runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    eprintln!("{:?}", seen.counts.lock().unwrap());
    let wrong = seen.wrong.lock().unwrap();
    assert!(wrong.is_empty(), "{} of them: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    drop(runtime);
    let mut last = generations.pop().unwrap();
    for old in generations.iter_mut().chain([&mut first]) {
        assert!(old.wait().success(), "{}", old.log());
    }
    assert!(last.ended().is_none());
    assert_eq!(get(lease.port(), HOST, ""), (200, "/".into()));
    assert!(last.stop().success());
}

#[test]
fn a_port_of_a_service_manager_outlives_hand_overs_and_restarts_without_a_refusal() {
    let home = Home::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let serve = format!("serve --docker-enabled=false --http-enabled --http-addr {at}");
    let fd = socket.as_raw_fd();
    let script = format!("LISTEN_FDS=1 LISTEN_FDS_FIRST_FD={fd} LISTEN_PID=$$ exec {DEVMESHD} {serve}");
    let mut first = home.start("first", "/bin/sh", &["-c", &script]);
    drop(socket);
    first.expect("msg=http_listening");
    register(&home, "web", http("W"), &[]);
    assert_eq!(get(at.port(), HOST, ""), (200, "W".into()));

    let mut args: Vec<&str> = serve.split(' ').collect();
    args.push("--take-over");
    let mut second = home.start("second", DEVMESHD, &args);
    second.expect("msg=daemon_took_over");
    assert!(first.wait().success());
    assert_eq!(get(at.port(), HOST, ""), (200, "W".into()));

    let over = Arc::new(AtomicBool::new(false));
    let stop = over.clone();
    let load = thread::spawn(move || {
        let mut wrong = Vec::new();
        while !stop.load(Relaxed) {
            // Whoever registered it is not back after a restart; nobody is refused or cut for that.
            match std::panic::catch_unwind(|| get(at.port(), HOST, "")) {
                Ok((200 | 503, _)) => {}
                Ok(other) => wrong.push(format!("{other:?}")),
                Err(_) => wrong.push("refused or cut".into()),
            }
        }
        wrong
    });
    let started = |daemon: &Process| daemon.log().matches("msg=http_listening").count();
    for again in 2..=3 {
        second.signal(Signal::USR2);
        wait_until("it is started again", PATIENCE, || {
            assert!(second.ended().is_none(), "{}", second.log());
            started(&second) == again
        });
        wait_until("it answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
        register(&home, "web", http("W"), &[]);
        wait_until("the service is back", PATIENCE, || get(at.port(), HOST, "") == (200, "W".into()));
    }
    over.store(true, Relaxed);
    let wrong = load.join().unwrap();
    assert!(wrong.is_empty(), "{} of them: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    assert!(second.stop().success());
}
