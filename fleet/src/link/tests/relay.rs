//! Streams over direct-tcpip.
use super::*;
use crate::fault::Class;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Stream = Pin<Box<dyn RemoteStream>>;

/// A stream, the service's end of it, and the service's listener.
async fn pair(link: &Link, sshd: &Sshd) -> (Stream, TcpStream, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let stream = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let service = listener.accept().await.unwrap().0;
    (stream, service, listener)
}

async fn refused(link: &Link, sshd: &Sshd, endpoint: SocketAddr) -> LinkError {
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.err().unwrap()
}

/// A port that is ours and takes no connections until `listen`.
fn closed_port() -> (tokio::net::TcpSocket, SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn logins(sshd: &Sshd) -> usize {
    sshd.log().matches("Accepted publickey").count()
}

#[tokio::test]
async fn half_closes_are_passed_on_both_ways_byte_for_byte() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut stream, mut service, _) = pair(&link, &sshd).await;
    let up = tokio::spawn(async move {
        stream.write_all(&vec![7; 9_000_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    });
    let mut all = Vec::new();
    service.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), 9_000_000);
    let mut stream = up.await.unwrap();
    service.write_all(&vec![8; 3_000_000]).await.unwrap();
    service.shutdown().await.unwrap();
    all.clear();
    stream.read_to_end(&mut all).await.unwrap();
    assert_eq!(all.len(), 3_000_000);
    // Both directions ended: the channel goes without a trace, and the session stays.
    drop(stream);
    let session = link.pool.sessions().pop().unwrap();
    until("the channel to be closed by sshd", || session.idle().is_some()).await;
    assert!(!session.has_ended());
}

#[tokio::test]
async fn the_service_may_end_first_and_still_hear() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut stream, mut service, _) = pair(&link, &sshd).await;
    service.write_all(b"bye").await.unwrap();
    service.shutdown().await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"bye");
    stream.write_all(b"last words").await.unwrap();
    stream.shutdown().await.unwrap();
    heard.clear();
    service.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"last words");
}

#[tokio::test]
async fn streams_of_one_endpoint_share_a_session_and_others_do_not() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let mut opens = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (link, paths) = (link.clone(), sshd.paths());
        opens.spawn(async move { link.open(&host(), &paths, endpoint, SHORT).await.map(drop) });
    }
    for opened in opens.join_all().await {
        opened.unwrap();
    }
    assert_eq!(logins(&sshd), 1);
    pair(&link, &sshd).await;
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    assert_eq!(logins(&sshd), 3);
}

#[tokio::test]
async fn a_closed_port_is_refused_in_words_and_keeps_the_session() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (socket, endpoint) = closed_port();
    let mut opens = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (link, paths) = (link.clone(), sshd.paths());
        opens.spawn(async move { link.open(&host(), &paths, endpoint, SHORT).await.err().unwrap() });
    }
    for error in opens.join_all().await {
        assert_eq!((error.stage, error.class), (Stage::Service, Class::Refused));
        let at = format!("{}:{}", sshd.address, sshd.port);
        let wanted = format!("SSH destination {at} refused channel to {endpoint}: connect failed: Connection refused");
        assert_eq!(error.to_string(), wanted);
    }
    let listener = socket.listen(16).unwrap();
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    listener.accept().await.unwrap();
    assert_eq!(logins(&sshd), 1);
}

#[tokio::test]
async fn what_sshd_forbids_is_said_as_such() {
    for line in ["PermitOpen 127.0.0.1:1", "AllowTcpForwarding no"] {
        let Some(sshd) = sshd::start(Options { config: vec![line.into()], ..Options::default() }) else { return };
        let error = refused(&sshd.link(), &sshd, closed_port().1).await;
        assert_eq!((error.stage, error.class), (Stage::Open, Class::Refused));
        let text = error.to_string();
        assert!(text.contains("administratively prohibited: open failed"), "{text}");
        assert!(text.contains("AllowTcpForwarding, PermitOpen or permitopen="), "{text}");
    }
}

#[tokio::test]
async fn a_reader_that_never_reads_stops_no_other_and_loses_nothing() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut lazy, mut flood, listener) = pair(&link, &sshd).await;
    let endpoint = listener.local_addr().unwrap();
    let sent = 40 << 20;
    let flooding = tokio::spawn(async move { flood.write_all(&vec![5; sent]).await });
    let held = link.pool.sessions().pop().unwrap();
    until("the lone stream to be held", || held.enter().is_none()).await;
    // Another endpoint, and another stream of the same one, go on as ever.
    let (mut other, mut far, _) = pair(&link, &sshd).await;
    far.write_all(b"hello").await.unwrap();
    other.read_exact(&mut [0; 5]).await.unwrap();
    let mut same = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.write_all(b"hello").await.unwrap();
    same.read_exact(&mut [0; 5]).await.unwrap();
    // And once it reads, everything is there.
    let mut all = Vec::new();
    lazy.read_to_end(&mut all).await.unwrap();
    flooding.await.unwrap().unwrap();
    assert_eq!(all.len(), sent);
}

#[tokio::test]
async fn a_reader_that_never_reads_beside_others_is_closed_with_a_reason() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let mut lazy = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let (mut flood, _) = listener.accept().await.unwrap();
    let mut other = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    let flooding = tokio::spawn(async move { flood.write_all(&vec![5; 60 << 20]).await });
    // The session goes on all the time, until the flood is told that its channel is closed.
    let deadline = Instant::now() + SHORT;
    while !flooding.is_finished() {
        assert!(Instant::now() < deadline, "the lazy stream was not closed");
        far.write_all(b"ping").await.unwrap();
        other.read_exact(&mut [0; 4]).await.unwrap();
    }
    let mut all = Vec::new();
    let error = lazy.read_to_end(&mut all).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    assert!(error.to_string().contains("more than 8 MiB behind"), "{error}");
    assert!(all.len() > 6 << 20 && all.len() < 9 << 20, "{}", all.len());
    far.write_all(b"ping").await.unwrap();
    other.read_exact(&mut [0; 4]).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_dropped_stops_a_sender_at_once() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (stream, mut flood, _) = pair(&link, &sshd).await;
    let flooding = tokio::spawn(async move { while flood.write_all(&[5; 65536]).await.is_ok() {} });
    drop(stream);
    tokio::time::timeout(SHORT, flooding).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_dead_session_ends_its_streams_with_a_reason_and_is_replaced() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut stream, _service, listener) = pair(&link, &sshd).await;
    let endpoint = listener.local_addr().unwrap();
    sshd.kill_sessions();
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    assert!(error.to_string().starts_with("the SSH session to 127."), "{error}");
    assert_eq!(stream.write(b"x").await.unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    listener.accept().await.unwrap();
}

#[tokio::test]
async fn a_session_that_died_unseen_is_replaced_before_anything_is_sent() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (_stream, _service, listener) = pair(&link, &sshd).await;
    let endpoint = listener.local_addr().unwrap();
    // The kernel of this side has the end already; the session's task may not have read it.
    sshd.kill_sessions();
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    listener.accept().await.unwrap();
}

#[tokio::test]
async fn a_host_that_stops_answering_is_noticed_by_the_keepalive() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let timing = Timing { keepalive: Duration::from_millis(300), keepalive_max: 2, ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    let (mut stream, _service, _) = pair(&link, &sshd).await;
    let began = Instant::now();
    sshd.stop_sessions();
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert!(error.to_string().ends_with("the host answered no keepalive"), "{error}");
    assert!(began.elapsed() < Duration::from_millis(1900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_mute_server_ends_at_the_deadline_for_its_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let timing = Timing { banner: Duration::from_millis(300), ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..LinkConfig::default() });
    let paths = single_path(address.to_string().parse().unwrap());
    let began = Instant::now();
    let error = link.open(&host(), &paths, address, SHORT).await.err().unwrap();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!((error.stage, error.class), (Stage::Banner, Class::Timeout));
    let cause = format!(
        "primary: the SSH handshake with {address} failed: it took the connection and sent no SSH identification within 0.3s"
    );
    assert!(error.causes().starts_with(&cause), "{error}");
    // The socket is gone too: nobody is left in the handshake.
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    tokio::time::timeout(SHORT, stream.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert!(heard.starts_with(b"SSH-2.0-Stado_"));
}

#[tokio::test]
async fn the_budget_of_an_open_covers_the_connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let paths = single_path(address.to_string().parse().unwrap());
    let began = Instant::now();
    let link = Link::new(LinkConfig::default());
    let error = link.open(&host(), &paths, address, Duration::from_millis(300)).await.err().unwrap();
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!((error.class, error.to_string().as_str()), (Class::Timeout, "no SSH session to far within 0.3s"));
}

#[tokio::test]
async fn one_mute_host_holds_up_no_other() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let mut mute = Vec::new();
    for n in 0..8 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let paths = single_path(listener.local_addr().unwrap().to_string().parse().unwrap());
        let (link, name) = (link.clone(), format!("mute-{n}").parse().unwrap());
        tokio::spawn(async move { link.exec(&name, &paths, "true", b"", limits()).await });
        mute.push(listener);
    }
    for listener in mute.iter().take(4) {
        listener.accept().await.unwrap();
    }
    let began = Instant::now();
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_idle_session_is_ended_after_a_while() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let timing = Timing { idle: Duration::from_millis(200), ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    until("the session to be ended", || link.pool.sessions().is_empty()).await;
    until("sshd to see it", || sshd.log().contains("Received disconnect")).await;
}

#[tokio::test]
async fn closing_the_link_ends_every_session() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut stream, _service, _) = pair(&link, &sshd).await;
    link.close().await;
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
}

#[tokio::test]
async fn a_session_that_was_closed_on_too_often_is_renewed_with_its_streams_untouched() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = sshd.link();
    let (mut kept, mut far, listener) = pair(&link, &sshd).await;
    let endpoint = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut streams = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            streams.push(stream);
            streams.truncate(16);
        }
    });
    for _ in 0..super::super::session::FORCED_CLOSES + 8 {
        link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    }
    // A close is counted when the session's task has taken it, which may be a few streams later.
    let deadline = Instant::now() + SHORT;
    while logins(&sshd) < 2 {
        assert!(Instant::now() < deadline, "waited in vain for another session");
        link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    }
    far.write_all(b"still here").await.unwrap();
    kept.read_exact(&mut [0; 10]).await.unwrap();
}
