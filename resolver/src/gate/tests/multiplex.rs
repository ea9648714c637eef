//! Streams inside the multiplex: what holds for TCP holds for them.
use super::*;
use stado_fleet::link::RemoteStream;
use std::pin::Pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Stream = Pin<Box<dyn RemoteStream>>;

async fn service(rig: &Rig) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    rig.allow(endpoint);
    (listener, endpoint)
}

async fn open(link: &Link, rig: &Rig, endpoint: SocketAddr) -> Result<Stream, LinkError> {
    let opened = link.relay(&host(), &rig.paths(), None, endpoint, SHORT).await;
    assert!(link.roads().iter().all(|road| road.carrier == "multiplex"), "{:?}", link.roads());
    opened
}

async fn pair_on(link: &Link, rig: &Rig) -> (Stream, TcpStream) {
    let (listener, endpoint) = service(rig).await;
    let stream = open(link, rig, endpoint).await.unwrap();
    (stream, listener.accept().await.unwrap().0)
}

async fn pair(rig: &Rig) -> (Stream, TcpStream, Link) {
    let link = rig.link();
    let (stream, service) = pair_on(&link, rig).await;
    (stream, service, link)
}

fn reset(service: TcpStream) {
    socket2::SockRef::from(&service).set_linger(Some(Duration::ZERO)).unwrap();
}

async fn write_until_refused(to: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Error {
    loop {
        if let Err(error) = to.write_all(b"x").await {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn is_reset(reading: impl Future<Output = std::io::Result<usize>>) {
    let error = tokio::time::timeout(SHORT, reading).await.expect("a reset arrives").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[tokio::test]
async fn half_closes_are_passed_on_both_ways_byte_for_byte() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    let body: Vec<u8> = (0..9_000_001u32).map(|n| (n % 251) as u8).collect();
    let sent = body.clone();
    let sending = tokio::spawn(async move {
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    });
    let mut up = Vec::new();
    service.read_to_end(&mut up).await.unwrap();
    assert!(up == body);
    let mut stream = sending.await.unwrap();
    let sending = tokio::spawn(async move { service.write_all(&body).await.unwrap() });
    let mut down = Vec::new();
    stream.read_to_end(&mut down).await.unwrap();
    sending.await.unwrap();
    assert!(down == up);
}

#[tokio::test]
async fn the_service_may_end_first_and_still_hear() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    service.write_all(b"bye").await.unwrap();
    service.shutdown().await.unwrap();
    let mut down = Vec::new();
    stream.read_to_end(&mut down).await.unwrap();
    assert_eq!(down, b"bye");
    stream.write_all(b"last").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut up = Vec::new();
    service.read_to_end(&mut up).await.unwrap();
    assert_eq!(up, b"last");
}

#[tokio::test]
async fn a_reset_of_the_service_arrives_as_one_open_or_half_closed() {
    let rig = Rig::start().await;
    let (mut stream, service, link) = pair(&rig).await;
    reset(service);
    is_reset(stream.read(&mut [0; 1])).await;
    // Its client had ended its own direction.
    let (mut stream, mut service) = pair_on(&link, &rig).await;
    stream.shutdown().await.unwrap();
    assert_eq!(service.read(&mut [0; 1]).await.unwrap(), 0);
    reset(service);
    is_reset(stream.read(&mut [0; 1])).await;
    // It had ended its own direction, and the client says nothing meanwhile.
    let (mut stream, mut service) = pair_on(&link, &rig).await;
    service.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    reset(service);
    let error = tokio::time::timeout(SHORT, write_until_refused(&mut stream)).await.unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[tokio::test]
async fn a_stream_that_is_dropped_arrives_as_a_reset_open_or_half_closed() {
    let rig = Rig::start().await;
    let (mut stream, mut service, link) = pair(&rig).await;
    stream.write_all(b"x").await.unwrap();
    service.read_exact(&mut [0; 1]).await.unwrap();
    drop(stream);
    is_reset(service.read(&mut [0; 1])).await;
    let (mut stream, mut service) = pair_on(&link, &rig).await;
    stream.shutdown().await.unwrap();
    assert_eq!(service.read(&mut [0; 1]).await.unwrap(), 0);
    drop(stream);
    let error = tokio::time::timeout(SHORT, write_until_refused(&mut service)).await.unwrap();
    assert!(matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe), "{error}");
    let (mut stream, mut service) = pair_on(&link, &rig).await;
    service.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    drop(stream);
    is_reset(service.read(&mut [0; 1])).await;
}

#[tokio::test]
async fn a_reset_reaches_a_writer_that_waits_for_credit() {
    let rig = Rig::start().await;
    let (mut stream, service, _link) = pair(&rig).await;
    let writing = tokio::spawn(async move {
        loop {
            if let Err(error) = stream.write_all(&[7; 65536]).await {
                return error.kind();
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!writing.is_finished(), "nobody reads, so that the writer waits");
    reset(service);
    let kind = tokio::time::timeout(SHORT, writing).await.unwrap().unwrap();
    assert_eq!(kind, std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_is_refused_is_said_in_the_words_of_the_far_side_and_the_rest_goes_on() {
    let rig = Rig::start().await;
    let (mut kept, mut far, link) = pair(&rig).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = socket.local_addr().unwrap();
    let refused = open(&link, &rig, endpoint).await.err().unwrap();
    assert_eq!((refused.stage, refused.class), (Stage::Open, stado_fleet::fault::Class::Refused));
    let wanted = format!(
        "SSH destination {} refused channel to {endpoint}: administratively prohibited: stado gate: the directory places nothing at {endpoint} on this host",
        rig.address
    );
    assert_eq!(refused.to_string(), wanted);
    let foreign = open(&link, &rig, "192.0.2.1:80".parse().unwrap()).await.err().unwrap();
    assert!(foreign.to_string().ends_with("192.0.2.1 is no loopback address"), "{foreign}");
    rig.allow(endpoint);
    let closed = open(&link, &rig, endpoint).await.err().unwrap();
    let wanted = format!("connect failed: connect to {endpoint}: Connection refused (os error 111)");
    assert!(closed.to_string().ends_with(&wanted), "{closed}");
    let listener = socket.listen(16).unwrap();
    open(&link, &rig, endpoint).await.unwrap();
    listener.accept().await.unwrap();
    far.write_all(b"still here").await.unwrap();
    kept.read_exact(&mut [0; 10]).await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_the_client_heard_of_first_is_looked_for_once_more() {
    let rig = Rig::start().await;
    for carrier in ["multiplex", "direct-tcpip"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap();
        rig.verbs.late.lock().unwrap().insert(endpoint);
        let link = rig.link();
        match carrier {
            "multiplex" => drop(open(&link, &rig, endpoint).await.unwrap()),
            _ => drop(link.open(&host(), &rig.paths(), endpoint, SHORT).await.unwrap()),
        }
        listener.accept().await.unwrap();
    }
}

#[tokio::test]
async fn a_reader_that_never_reads_slows_only_itself_and_loses_nothing() {
    let rig = Rig::start().await;
    let (mut lazy, mut flood, link) = pair(&rig).await;
    let sent = 24 << 20;
    let flooding = tokio::spawn(async move { flood.write_all(&vec![5; sent]).await });
    for _ in 0..20 {
        let (mut other, mut far) = pair_on(&link, &rig).await;
        far.write_all(b"hello").await.unwrap();
        other.read_exact(&mut [0; 5]).await.unwrap();
        other.write_all(b"hello").await.unwrap();
        far.read_exact(&mut [0; 5]).await.unwrap();
    }
    assert!(!flooding.is_finished(), "nobody reads, so that the flood waits");
    let mut all = Vec::new();
    lazy.read_to_end(&mut all).await.unwrap();
    flooding.await.unwrap().unwrap();
    assert_eq!(all.len(), sent);
}

#[tokio::test]
async fn an_upload_that_the_service_does_not_read_holds_no_other_and_arrives_whole() {
    let rig = Rig::start().await;
    let (mut stuck, mut slow, link) = pair(&rig).await;
    let upload = tokio::spawn(async move {
        stuck.write_all(&vec![9; 24 << 20]).await.unwrap();
        stuck.shutdown().await.unwrap();
        stuck.read(&mut [0; 1]).await.unwrap()
    });
    let (mut other, mut far) = pair_on(&link, &rig).await;
    for _ in 0..20 {
        other.write_all(&[1; 100_000]).await.unwrap();
        far.read_exact(&mut vec![0; 100_000]).await.unwrap();
    }
    let mut all = Vec::new();
    slow.read_to_end(&mut all).await.unwrap();
    drop(slow);
    assert_eq!((all.len(), upload.await.unwrap()), (24 << 20, 0));
}

#[tokio::test]
async fn many_streams_at_once_each_get_their_own_bytes() {
    let rig = Rig::start().await;
    let (listener, endpoint) = service(&rig).await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    let link = rig.link();
    let mut all = tokio::task::JoinSet::new();
    for n in 0..120u8 {
        let stream = open(&link, &rig, endpoint).await.unwrap();
        all.spawn(async move {
            let (mut from, mut to) = tokio::io::split(stream);
            let body: Vec<u8> = (0..200_000u32).map(|i| (i % 249) as u8 ^ n).collect();
            let sent = body.clone();
            let sending = tokio::spawn(async move {
                to.write_all(&sent).await.unwrap();
                to.shutdown().await.unwrap();
            });
            let mut back = Vec::new();
            from.read_to_end(&mut back).await.unwrap();
            sending.await.unwrap();
            back == body
        });
    }
    assert!(all.join_all().await.into_iter().all(|whole| whole));
}

#[tokio::test]
async fn clients_that_leave_in_a_crowd_end_no_other() {
    let rig = Rig::start().await;
    let (mut kept, mut far, link) = pair(&rig).await;
    let (listener, endpoint) = service(&rig).await;
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    for _ in 0..400 {
        drop(open(&link, &rig, endpoint).await.unwrap());
    }
    // And some leave before they were answered.
    for _ in 0..100 {
        let (name, paths) = (host(), rig.paths());
        let opening = link.relay(&name, &paths, None, endpoint, SHORT);
        let _ = tokio::time::timeout(Duration::ZERO, opening).await;
    }
    far.write_all(b"still here").await.unwrap();
    kept.read_exact(&mut [0; 10]).await.unwrap();
    assert_eq!(link.roads().first().map(|road| road.carrier), Some("multiplex"));
}

#[tokio::test]
async fn a_closing_gate_resets_the_services_and_tells_the_clients() {
    let mut rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.shutdown().await.unwrap();
    assert_eq!(service.read(&mut [0; 1]).await.unwrap(), 0);
    let closing = tokio::time::timeout(SHORT, rig.gate.take().unwrap().close()).await;
    assert!(closing.is_ok(), "the gate waits for a service");
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    let mut write = Ok(());
    while write.is_ok() {
        write = service.write_all(b"x").await;
        tokio::task::yield_now().await;
    }
}

/// A daemon that was taken over keeps its gate's streams, and no session without one: a watch or a multiplex alone does not
/// keep it alive.
#[tokio::test]
async fn a_gate_that_leaves_keeps_streams_and_lets_idle_sessions_go() {
    let mut rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    let idle = rig.link();
    idle.exec(&host(), &rig.paths(), "/opt/stado/bin/stado resolver snapshot", b"", limits()).await.unwrap();
    let gate = rig.gate.take().unwrap();
    let listener = gate.lend().unwrap();
    gate.leave();
    stream.write_all(b"on").await.unwrap();
    service.read_exact(&mut [0; 2]).await.unwrap();
    let ends = async {
        while gate.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(300), ends).await.is_err(), "the stream is carried on");
    stream.shutdown().await.unwrap();
    drop(service);
    drop(stream);
    let deadline = tokio::time::Instant::now() + SHORT;
    while gate.open() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "{} are left", gate.open());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(listener);
}
