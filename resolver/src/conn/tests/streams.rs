//! Rules 5 and 6: ends, resets, linger, back-pressure.
use super::support::*;
use crate::conn::ledger::Outcome;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn half_close_is_passed_on_both_ways() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (mut client, mut served) = rig.pair(&backend).await;
    client.write_all(b"request").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut served).await.unwrap(), b"request");
    served.write_all(b"answer after the end").await.unwrap();
    drop(served);
    assert_eq!(read_all(&mut client).await.unwrap(), b"answer after the end");

    let (mut client, mut served) = rig.pair(&backend).await;
    served.write_all(b"greeting").await.unwrap();
    served.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), b"greeting");
    client.write_all(b"upload after the end").await.unwrap();
    drop(client);
    assert_eq!(read_all(&mut served).await.unwrap(), b"upload after the end");
    until("both are over", || rig.counters().active == 0).await;
    assert!(rig.context.ledger.recent("svc").iter().all(|r| r.outcome == Outcome::Done));
}

/// How far a connection has come when one end resets it.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Idle,
    PeerHalfClosed,
    SelfHalfClosed,
    PeerNotReading,
}
const STAGES: [Stage; 4] = [Stage::Idle, Stage::PeerHalfClosed, Stage::SelfHalfClosed, Stage::PeerNotReading];

async fn bring_to(stage: Stage, resetting: &mut TcpStream, peer: &mut TcpStream) {
    match stage {
        Stage::Idle => {}
        Stage::PeerHalfClosed => {
            peer.shutdown().await.unwrap();
            assert_eq!(read_all(resetting).await.unwrap(), b"");
        }
        Stage::SelfHalfClosed => {
            resetting.shutdown().await.unwrap();
            assert_eq!(read_all(peer).await.unwrap(), b"");
        }
        Stage::PeerNotReading => fill(resetting).await,
    }
}

/// Writes until nothing more is taken for a while; returns how much was.
async fn fill(stream: &mut TcpStream) {
    let chunk = vec![7u8; 64 << 10];
    while let Ok(written) = timeout(Duration::from_millis(300), stream.write(&chunk)).await {
        written.unwrap();
    }
}

#[tokio::test]
async fn a_reset_is_passed_on_within_a_second_both_ways_at_every_stage() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    for stage in STAGES {
        for by_client in [true, false] {
            let (client, served) = rig.pair(&backend).await;
            let (mut resetting, mut peer) = if by_client { (client, served) } else { (served, client) };
            bring_to(stage, &mut resetting, &mut peer).await;
            reset(resetting);
            if matches!(stage, Stage::SelfHalfClosed) {
                // The peer has read the end of the stream: the reset shows when it writes.
                until_write_fails(&mut peer).await;
            } else {
                expect_reset(&mut peer).await;
            }
            until(&format!("{stage:?} by_client={by_client} is over"), || rig.counters().active == 0).await;
            let outcome = rig.context.ledger.recent("svc").remove(0).outcome;
            let right =
                if by_client { outcome == Outcome::ClientReset } else { matches!(outcome, Outcome::ServiceReset(_)) };
            assert!(right, "{stage:?} by_client={by_client}: {outcome}");
        }
    }
}

#[tokio::test]
async fn the_end_of_one_connection_ends_no_other() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (mut steady, mut served) = rig.pair(&backend).await;
    for by_client in [true, false] {
        let (client, other) = rig.pair(&backend).await;
        let (resetting, mut other) = if by_client { (client, other) } else { (other, client) };
        reset(resetting);
        expect_reset(&mut other).await;
        steady.write_all(b"on").await.unwrap();
        assert_eq!(read_exact(&mut served, 2).await, b"on");
    }
}

#[tokio::test]
async fn a_backend_that_resets_at_once_resets_the_client() {
    let (backend, addr) = listener().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = backend.accept().await {
            reset(stream);
        }
    });
    let rig = Rig::mesh(local(addr));
    for _ in 0..50 {
        expect_reset(&mut rig.connect().await).await;
    }
}

async fn until_write_fails(stream: &mut TcpStream) {
    let failed = timeout(Duration::from_secs(1), async {
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    failed.await.expect("a reset within a second");
}

#[tokio::test]
async fn a_half_closed_silent_pair_ends_and_any_byte_renews_it() {
    let (backend, addr) = listener().await;
    let linger = Duration::from_millis(400);
    let rig = Rig::mesh_with(local(addr), |context| context.limits.linger = linger);
    let (mut client, mut served) = rig.pair(&backend).await;
    client.shutdown().await.unwrap();
    let began = std::time::Instant::now();
    for _ in 0..8 {
        served.write_all(b".").await.unwrap();
        assert_eq!(read_exact(&mut client, 1).await, b".");
        tokio::time::sleep(linger / 4).await;
    }
    assert!(began.elapsed() > linger, "the bytes went on past one deadline");
    assert_eq!(rig.counters().active, 1);
    expect_end(&mut client).await;
    until("the pair ended", || rig.counters().active == 0).await;
    assert_eq!(rig.context.ledger.recent("svc").remove(0).outcome, Outcome::Lingered);
}

async fn expect_end(stream: &mut TcpStream) {
    let error = read_all(stream).await.expect_err("a broken transfer, never a clean end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn an_open_pair_may_be_silent_for_ever() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh_with(local(addr), |context| context.limits.linger = Duration::from_millis(20));
    let (mut client, mut served) = rig.pair(&backend).await;
    assert!(timeout(Duration::from_millis(300), client.read_u8()).await.is_err());
    served.write_all(b"late").await.unwrap();
    assert_eq!(read_exact(&mut client, 4).await, b"late");
}

#[tokio::test]
async fn a_reader_that_never_reads_holds_bounded_bytes_and_nobody_else() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (client, mut served) = rig.pair(&backend).await;
    // Small kernel buffers, so that what is left over is ours.
    socket2::SockRef::from(&served).set_send_buffer_size(64 << 10).unwrap();
    socket2::SockRef::from(&client).set_recv_buffer_size(64 << 10).unwrap();
    fill(&mut served).await;
    let held = rig.counters().bytes_down;
    fill(&mut served).await;
    assert_eq!(rig.counters().bytes_down, held, "a stalled direction takes nothing more");

    let (mut other, mut served_too) = rig.pair(&backend).await;
    other.write_all(b"go on").await.unwrap();
    assert_eq!(read_exact(&mut served_too, 5).await, b"go on");
    drop(client);
}

#[tokio::test]
async fn two_thousand_short_connections_leave_nothing_behind() {
    let backend = greeter("hi").await;
    let rig = Rig::mesh(local(backend));
    for _ in 0..40 {
        let mut batch = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let addr = rig.addr;
            batch.spawn(async move {
                let mut client = TcpStream::connect(addr).await.unwrap();
                client.write_all(b"!").await.unwrap();
                client.shutdown().await.unwrap();
                assert_eq!(read_all(&mut client).await.unwrap(), b"hi!");
            });
        }
        while let Some(done) = batch.join_next().await {
            done.unwrap();
        }
    }
    until("all are over", || rig.counters().active == 0).await;
    let counters = rig.counters();
    assert_eq!((counters.opened, counters.bytes_up, counters.bytes_down), (2000, 2000, 6000));
    #[cfg(target_os = "linux")]
    until("no socket is stuck", || stuck(rig.addr.port()) + stuck(backend.port()) == 0).await;
}

/// Sockets in FIN-WAIT-2 or CLOSE-WAIT of connections to `port`, at either end.
#[cfg(target_os = "linux")]
fn stuck(port: u16) -> usize {
    let port = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_stuck = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        (fields[1].ends_with(&port) || fields[2].ends_with(&port)) && matches!(fields[3], "05" | "08")
    };
    table.lines().skip(1).filter(is_stuck).count()
}

#[tokio::test]
async fn a_thousand_resets_each_way_are_a_thousand_resets_and_leave_nothing_behind() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    for n in 0..2000 {
        let (client, served) = rig.pair(&backend).await;
        let (resetting, mut other) = if n % 2 == 0 { (client, served) } else { (served, client) };
        reset(resetting);
        expect_reset(&mut other).await;
    }
    until("all are over", || rig.counters().active == 0).await;
    assert_eq!(rig.counters().opened, 2000);
    #[cfg(target_os = "linux")]
    until("no socket is stuck", || stuck(rig.addr.port()) + stuck(addr.port()) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_megabytes_each_way_at_once_arrive_unchanged() {
    const SIZE: usize = 200_000_000;
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (client, served) = rig.pair(&backend).await;
    let ends = [tokio::spawn(exchange(client, SIZE, 3)), tokio::spawn(exchange(served, SIZE, 5))];
    let mut hashes = Vec::new();
    for end in ends {
        hashes.push(timeout(PATIENCE * 6, end).await.unwrap().unwrap());
    }
    assert!(hashes[0].sent == hashes[1].read && hashes[1].sent == hashes[0].read);
    assert_ne!(hashes[0].sent, hashes[1].sent);
    until("the connection is over", || rig.counters().active == 0).await;
    let size = u64::try_from(SIZE).unwrap();
    assert_eq!((rig.counters().bytes_up, rig.counters().bytes_down), (size, size));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bulk_takes_pipes_and_gives_them_back_when_it_rests() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (mut client, served) = rig.pair(&backend).await;
    let pipes = || rig.context.descriptors.pipe_bytes();
    client.write_all(b"small").await.unwrap();
    until("the message is through", || rig.counters().bytes_up == 5).await;
    assert_eq!(pipes(), 0, "a small message needs none");
    fill(&mut client).await;
    assert!(pipes() > 0);
    // A reader that does not read keeps the pipe; one that has read all lets it go.
    let (mut read, write) = served.into_split();
    let reading = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
    until("the pipe is given back", || pipes() == 0).await;
    client.write_all(b"again").await.unwrap();
    drop(client);
    let total = timeout(PATIENCE, reading).await.unwrap().unwrap().unwrap();
    drop(write);
    until("the connection is over", || rig.counters().active == 0).await;
    assert_eq!(rig.counters().bytes_up, total);
}

/// SHA-256 of what one end sent and of what it read.
struct Hashes {
    sent: [u8; 32],
    read: [u8; 32],
}

/// Sends `size` bytes that no two seeds or places share, and reads until the end.
async fn exchange(stream: TcpStream, size: usize, seed: u64) -> Hashes {
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let (mut hash, mut left, mut place) = (Sha256::new(), size, seed << 40);
        let mut chunk = vec![0u8; 100_000];
        while left > 0 {
            for word in chunk.chunks_exact_mut(8) {
                word.copy_from_slice(&place.to_le_bytes());
                place += 1;
            }
            let part = &chunk[..left.min(chunk.len())];
            hash.update(part);
            write.write_all(part).await.unwrap();
            left -= part.len();
        }
        write.shutdown().await.unwrap();
        hash.finalize().into()
    });
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 50_000];
    loop {
        match read.read(&mut buffer).await.unwrap() {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Hashes { sent: sending.await.unwrap(), read: hash.finalize().into() }
}
