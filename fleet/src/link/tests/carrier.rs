//! Which carrier a host gets, and why: the far command is a script that stands for what may be there.
use super::*;
use crate::link::relay::{Admit, Admitting, Code, Explaining, Grant, Packets, Refusal, serve};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

impl Packets for TcpStream {}

/// A program on the far side.
pub(super) fn program(sshd: &Sshd, body: &str) -> String {
    let file = sshd.path("far stado");
    let mut script = std::fs::File::create(&file).unwrap();
    writeln!(script, "#!/bin/bash\n{body}").unwrap();
    drop(script);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What admits everything but one port, which it says is placed elsewhere, and counts.
pub(super) struct Places {
    not: u16,
    asked: AtomicUsize,
    /// Ends what was admitted.
    over: tokio_util::sync::CancellationToken,
}

impl Admit for Places {
    fn admit(&self, endpoint: SocketAddr) -> Admitting<'_> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let placed = endpoint.port() != self.not;
        let over = self.over.clone().cancelled_owned();
        let answer = placed.then(|| Box::pin(over) as Grant);
        let answer = answer.ok_or_else(|| Refusal::new(Code::NotPlaced, "nothing is placed there"));
        Box::pin(std::future::ready(answer))
    }
}

/// The far side of this build, behind a program that carries its bytes.
pub(super) async fn today(sshd: &Sshd, not: u16) -> (String, Arc<Places>) {
    let places = Arc::new(Places { not, asked: AtomicUsize::new(0), over: Default::default() });
    (far_side(sshd, places.clone()).await, places)
}

async fn far_side(sshd: &Sshd, admit: Arc<dyn Admit>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, admit.clone()));
        }
    });
    let body = format!("echo chatter; exec 3<>/dev/tcp/127.0.0.1/{port}\ncat <&3 & exec cat >&3");
    program(sshd, &body)
}

/// A host that knows why its services end without a word.
struct Knows;

impl Admit for Knows {
    fn admit(&self, _: SocketAddr) -> Admitting<'_> {
        Box::pin(std::future::ready(Ok(Box::pin(std::future::pending()) as Grant)))
    }
    fn why_ended(&self, endpoint: SocketAddr, client: SocketAddr) -> Explaining<'_> {
        Box::pin(std::future::ready(Some(format!("nobody is behind {endpoint} for {client}"))))
    }
}

#[tokio::test]
async fn a_service_that_ends_without_a_word_is_explained_and_one_that_spoke_ends_as_ever() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let command = far_side(&sshd, Arc::new(Knows)).await;
    let (listener, endpoint) = service().await;
    let link = sshd.link();
    for said in [&b""[..], b"a request that nobody reads"] {
        let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
        stream.write_all(said).await.unwrap();
        let (far, client) = listener.accept().await.unwrap();
        if !said.is_empty() {
            // Closed with bytes that nobody read, it is reset.
            far.readable().await.unwrap();
        }
        drop(far);
        let error = stream.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.to_string(), format!("nobody is behind {endpoint} for {client}"));
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the way stands");
    }
    let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.write_all(b"bye").await.unwrap();
    drop(far);
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"bye");
    assert_eq!(road(&link).carrier, "multiplex");
}

async fn service() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

fn logins(sshd: &Sshd) -> usize {
    sshd.log().matches("Accepted publickey").count()
}

/// What the link says of its one host.
fn road(link: &Link) -> RoadReport {
    let [road] = <[RoadReport; 1]>::try_from(link.roads()).unwrap();
    road
}

#[tokio::test]
async fn streams_to_a_host_that_runs_stado_share_one_session_whatever_their_endpoint() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (command, _) = today(&sshd, 0).await;
    let link = sshd.link();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let (listener, endpoint) = service().await;
        let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
        let (mut far, _) = listener.accept().await.unwrap();
        stream.write_all(b"there").await.unwrap();
        far.read_exact(&mut [0; 5]).await.unwrap();
        far.write_all(b"and back").await.unwrap();
        stream.read_exact(&mut [0; 8]).await.unwrap();
        kept.push((stream, far));
    }
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    assert_eq!(logins(&sshd), 1);
    let road = road(&link);
    assert_eq!((road.carrier, road.path.as_str(), road.streams), ("multiplex", "primary", 3));
    assert!(road.reason.unwrap().contains("chatter"), "what a login script says is told");
    until("a round trip to be measured", || link.roads().iter().all(|road| road.rtt.is_some())).await;
}

#[tokio::test]
async fn a_host_without_stado_gets_direct_tcpip_and_the_reason_is_told() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let brief = Duration::from_millis(500);
    for (body, preamble, why) in [
        ("echo usage: something else >&2; exit 2", SHORT, "the command ended (exit status 2: usage: something else)"),
        ("echo stado-relay 0", SHORT, "relay version \"0\", which this one does not know"),
        ("exec sleep 600", brief, "nothing came within 0.5s"),
    ] {
        let command = program(&sshd, body);
        let timing = Timing { preamble, ..Timing::default() };
        let link = Link::new(LinkConfig { timing, ..sshd.config() });
        let (listener, endpoint) = service().await;
        for _ in 0..2 {
            let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
            let (mut far, _) = listener.accept().await.unwrap();
            far.write_all(b"x").await.unwrap();
            stream.read_exact(&mut [0; 1]).await.unwrap();
        }
        let road = road(&link);
        assert_eq!(road.carrier, "direct-tcpip");
        let reason = road.reason.unwrap();
        assert!(reason.contains(why) && reason.contains("far stado' resolver relay"), "{reason}");
    }
}

#[tokio::test]
async fn an_endpoint_that_the_far_side_does_not_place_takes_direct_tcpip_and_others_do_not() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (elsewhere, not) = service().await;
    let (listener, placed) = service().await;
    let (command, places) = today(&sshd, not.port()).await;
    let link = sshd.link();
    for _ in 0..2 {
        link.relay(&host(), &sshd.paths(), Some(&command), not, SHORT).await.unwrap();
        elsewhere.accept().await.unwrap();
    }
    assert_eq!(places.asked.load(Ordering::SeqCst), 1, "the answer is remembered");
    let _stream = link.relay(&host(), &sshd.paths(), Some(&command), placed, SHORT).await.unwrap();
    listener.accept().await.unwrap();
    let road = road(&link);
    assert_eq!((road.carrier, road.streams), ("multiplex", 1));
    assert!(road.reason.unwrap().contains("nothing is placed there"));
}

#[tokio::test]
async fn a_stream_whose_grant_ends_is_reset_at_both_ends_and_the_multiplex_stays() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (command, places) = today(&sshd, 0).await;
    let link = sshd.link();
    let (listener, endpoint) = service().await;
    let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    stream.write_all(b"there").await.unwrap();
    far.read_exact(&mut [0; 5]).await.unwrap();
    places.over.cancel();
    let here = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    let there = tokio::time::timeout(SHORT, far.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!((here.kind(), there.kind()), (ErrorKind::ConnectionReset, ErrorKind::ConnectionReset));
    let road = road(&link);
    assert_eq!((road.carrier, logins(&sshd)), ("multiplex", 1));
}

#[tokio::test]
async fn a_multiplex_that_died_is_replaced_and_its_streams_end_with_a_reason() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (command, _) = today(&sshd, 0).await;
    let link = sshd.link();
    let (listener, endpoint) = service().await;
    let mut stream = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    sshd.kill_sessions();
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    let error = tokio::time::timeout(SHORT, far.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the service is told too");
    link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
    listener.accept().await.unwrap();
    assert_eq!(road(&link).carrier, "multiplex");
}

#[tokio::test]
async fn an_unused_multiplex_goes_after_a_while_with_its_session() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (command, _) = today(&sshd, 0).await;
    let timing = Timing { idle: Duration::from_millis(200), ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    let (_listener, endpoint) = service().await;
    drop(link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap());
    until("the multiplex to go", || link.roads().is_empty()).await;
    until("the session to be ended", || link.pool.sessions().is_empty()).await;
}

#[test]
fn opening_a_stream_costs_little_memory_while_a_thousand_of_them_are_opened() {
    let link = Link::new(LinkConfig::default());
    let (host, endpoint) = (host(), "127.0.0.1:1".parse().unwrap());
    let size = size_of_val(&link.relay(&host, &[], None, endpoint, SHORT));
    let direct = size_of_val(&link.open(&host, &[], endpoint, SHORT));
    eprintln!("relay {size} bytes, direct {direct} bytes");
    assert!(size < 1536, "{size} bytes");
}
