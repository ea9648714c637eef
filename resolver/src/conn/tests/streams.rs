//! Rules 5 and 6: ends, resets, linger, back-pressure.
use super::support::*;
use crate::conn::ledger::Outcome;
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
    let rig = Rig::mesh(local(greeter("hi").await));
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
    {
        let port = format!(":{:04X}", rig.addr.port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let stuck = |line: &&str| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            // FIN-WAIT-2 and CLOSE-WAIT on the frontend's port.
            fields[1].ends_with(&port) && matches!(fields[3], "05" | "08")
        };
        assert_eq!(table.lines().skip(1).filter(stuck).count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_both_ways_at_once_arrives_unchanged() {
    const SIZE: usize = 24 << 20;
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (client, served) = rig.pair(&backend).await;
    let ends = [tokio::spawn(exchange(client, SIZE, 3)), tokio::spawn(exchange(served, SIZE, 5))];
    let mut sums = Vec::new();
    for end in ends {
        sums.push(timeout(PATIENCE * 3, end).await.unwrap().unwrap());
    }
    assert_eq!((sums[0].0, sums[1].0), (sums[1].1, sums[0].1));
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

/// Sends `size` bytes from `seed` and reads until the end; returns position-dependent sums of both.
async fn exchange(stream: TcpStream, size: usize, seed: u64) -> (u64, u64) {
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let (mut sum, mut left, mut word) = (0u64, size, seed);
        while left > 0 {
            let chunk: Vec<u8> = std::iter::repeat_with(|| {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                word.to_be_bytes()[0]
            })
            .take(left.min(100_000))
            .collect();
            sum = add(sum, &chunk);
            write.write_all(&chunk).await.unwrap();
            left -= chunk.len();
        }
        write.shutdown().await.unwrap();
        sum
    });
    let mut sum = 0;
    let mut buffer = vec![0; 50_000];
    loop {
        match read.read(&mut buffer).await.unwrap() {
            0 => break,
            n => sum = add(sum, &buffer[..n]),
        }
    }
    (sending.await.unwrap(), sum)
}

fn add(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
