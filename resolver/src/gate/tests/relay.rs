//! Streams to the endpoints of the directory.
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn pair(rig: &Rig) -> (std::pin::Pin<Box<dyn stado_fleet::link::RemoteStream>>, TcpStream, Link) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    rig.allow(endpoint);
    let link = rig.link();
    let stream = link.open(&host(), &rig.paths(), endpoint, SHORT).await.unwrap();
    let (service, _) = listener.accept().await.unwrap();
    (stream, service, link)
}

#[tokio::test]
async fn half_closes_are_passed_on_both_ways_byte_for_byte() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.write_all(&vec![1; 3_000_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut up = Vec::new();
    service.read_to_end(&mut up).await.unwrap();
    assert_eq!(up.len(), 3_000_000);
    service.write_all(&vec![2; 3_000_000]).await.unwrap();
    drop(service);
    let mut down = Vec::new();
    stream.read_to_end(&mut down).await.unwrap();
    assert_eq!(down.len(), 3_000_000);
}

#[tokio::test]
async fn the_service_may_end_first() {
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
async fn a_reset_of_the_service_arrives_as_a_reset() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.write_all(b"x").await.unwrap();
    service.read_exact(&mut [0; 1]).await.unwrap();
    socket2::SockRef::from(&service).set_linger(Some(Duration::ZERO)).unwrap();
    drop(service);
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_stream_that_is_dropped_arrives_as_a_reset() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.write_all(b"x").await.unwrap();
    service.read_exact(&mut [0; 1]).await.unwrap();
    drop(stream);
    let error = tokio::time::timeout(SHORT, service.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_channel_whose_grant_ends_is_reset_at_both_ends() {
    let rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.write_all(b"x").await.unwrap();
    service.read_exact(&mut [0; 1]).await.unwrap();
    rig.verbs.over.cancel();
    let here = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap().unwrap_err();
    let there = tokio::time::timeout(SHORT, service.read(&mut [0; 1])).await.unwrap().unwrap_err();
    let reset = std::io::ErrorKind::ConnectionReset;
    assert_eq!((here.kind(), there.kind()), (reset, reset));
}

#[tokio::test]
async fn endpoints_are_those_of_the_directory_and_of_the_keys_line() {
    let rig = Rig::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let link = rig.link();
    let open = async |endpoint| link.open(&host(), &rig.paths(), endpoint, SHORT).await;
    let refused = open(endpoint).await.err().unwrap();
    assert_eq!((refused.stage, refused.class), (Stage::Open, Class::Refused));
    let wanted = format!(
        "SSH destination {} refused channel to {endpoint}: administratively prohibited: stado gate: the directory places nothing at {endpoint} on this host",
        rig.address
    );
    assert_eq!(refused.to_string(), wanted);
    let foreign = open("192.0.2.1:80".parse().unwrap()).await.err().unwrap();
    assert!(foreign.to_string().ends_with("stado gate: 192.0.2.1 is no loopback address"), "{foreign}");
    rig.allow(endpoint);
    open(endpoint).await.unwrap();
    let key = std::fs::read_to_string(rig.path("user.pub")).unwrap();
    std::fs::write(rig.path("authorized_keys"), format!("permitopen=\"127.0.0.1:9\" {key}\n")).unwrap();
    let error = rig.link().open(&host(), &rig.paths(), endpoint, SHORT).await.err().unwrap();
    assert!(error.to_string().contains("does not permit"), "{error}");
}

#[tokio::test]
async fn a_closed_port_is_said_and_the_session_goes_on() {
    let rig = Rig::start().await;
    // Ours, and taking no connections until `listen`.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = socket.local_addr().unwrap();
    rig.allow(endpoint);
    let link = rig.link();
    let error = link.open(&host(), &rig.paths(), endpoint, SHORT).await.err().unwrap();
    let wanted = format!("connect failed: connect to {endpoint}: Connection refused (os error 111)");
    assert!(error.to_string().ends_with(&wanted), "{error}");
    let listener = socket.listen(16).unwrap();
    link.open(&host(), &rig.paths(), endpoint, SHORT).await.unwrap();
    listener.accept().await.unwrap();
}

#[tokio::test]
async fn an_upload_that_the_service_does_not_read_holds_no_other_and_arrives_whole() {
    let rig = Rig::start().await;
    let (mut stuck, mut service, link) = pair(&rig).await;
    let body = vec![9; 24 << 20];
    let upload = tokio::spawn(async move {
        stuck.write_all(&body).await.unwrap();
        stuck.shutdown().await.unwrap();
        stuck.read(&mut [0; 1]).await.unwrap()
    });
    // Another endpoint has its own session.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    rig.allow(listener.local_addr().unwrap());
    let mut other = link.open(&host(), &rig.paths(), listener.local_addr().unwrap(), SHORT).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    far.write_all(b"hello").await.unwrap();
    other.read_exact(&mut [0; 5]).await.unwrap();
    // Once it reads, everything is there.
    let mut all = Vec::new();
    service.read_to_end(&mut all).await.unwrap();
    drop(service);
    assert_eq!((all.len(), upload.await.unwrap()), (24 << 20, 0));
}

#[tokio::test]
async fn a_half_closed_relay_ends_with_its_session_though_its_service_says_nothing() {
    let mut rig = Rig::start().await;
    let (mut stream, mut service, _link) = pair(&rig).await;
    stream.shutdown().await.unwrap();
    assert_eq!(service.read(&mut [0; 1]).await.unwrap(), 0);
    let closing = tokio::time::timeout(Duration::from_secs(5), rig.gate.take().unwrap().close()).await;
    assert!(closing.is_ok(), "the gate waits for a service");
    let mut write = Ok(());
    while write.is_ok() {
        write = service.write_all(b"x").await;
        tokio::task::yield_now().await;
    }
}
