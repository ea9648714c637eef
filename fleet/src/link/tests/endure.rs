//! What streams have to endure: rekeys, services that hardly say anything, a machine that slept.
use super::carrier::today;
use super::*;
use crate::link::keep;
use crate::link::wake::Slept;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Bytes of one download.
const EACH: usize = 6 << 20;

/// The byte at a place of a download: another one in each stream.
fn byte(stream: usize, at: usize) -> u8 {
    ((at / 251).wrapping_mul(stream + 1) ^ at) as u8
}

/// Eight downloads at once over sessions whose server renews the keys after each mebibyte.
async fn downloads_under_rekeys(multiplex: bool) {
    let often = vec!["RekeyLimit 1M".into(), "LogLevel DEBUG1".into()];
    let Some(sshd) = sshd::start(Options { config: often, ..Options::default() }) else { return };
    let (command, _) = today(&sshd, 0).await;
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = service.accept().await {
            tokio::spawn(async move {
                let which = usize::from(stream.read_u8().await.unwrap());
                let all: Vec<u8> = (0..EACH).map(|at| byte(which, at)).collect();
                stream.write_all(&all).await.unwrap();
            });
        }
    });
    let link = sshd.link();
    let mut downloads = JoinSet::new();
    for which in 0..8_usize {
        let paths = sshd.paths();
        let mut stream = match multiplex {
            true => link.relay(&host(), &paths, Some(&command), endpoint, SHORT).await.unwrap(),
            false => link.open(&host(), &paths, endpoint, SHORT).await.unwrap(),
        };
        downloads.spawn(async move {
            stream.write_u8(which as u8).await.unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            assert_eq!(all.len(), EACH, "stream {which}");
            assert!(all.iter().enumerate().all(|(at, b)| *b == byte(which, at)), "stream {which}");
        });
    }
    tokio::time::timeout(3 * SHORT, downloads.join_all()).await.expect("the downloads end");
    let rekeys = sshd.log().matches("SSH2_MSG_NEWKEYS received").count();
    assert!(rekeys > 16, "the keys were renewed {rekeys} times");
    assert!(link.pool.sessions().iter().all(|session| !session.has_ended()), "and no session ended over it");
}

#[tokio::test]
async fn eight_downloads_survive_rekeys_with_the_multiplex() {
    downloads_under_rekeys(true).await;
}

#[tokio::test]
async fn eight_downloads_survive_rekeys_with_direct_tcpip() {
    downloads_under_rekeys(false).await;
}

#[tokio::test]
async fn a_service_that_says_a_byte_now_and_then_is_neither_idle_nor_dead() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let (command, _) = today(&sshd, 0).await;
    // A minute, shortened: each byte comes later than a dead host would be noticed and an idle session closed.
    let brief = Duration::from_millis(150);
    let timing = Timing { keepalive: brief, keepalive_max: 1, idle: brief, probe: brief, ..Timing::default() };
    let between = (timing.silence() + timing.idle) * 2;
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = service.accept().await {
            tokio::spawn(async move {
                for said in 0..3_u8 {
                    tokio::time::sleep(between).await;
                    stream.write_u8(said).await.unwrap();
                }
            });
        }
    });
    let mut multiplexed = link.relay(&host(), &sshd.paths(), Some(&command), endpoint, SHORT).await.unwrap();
    let mut direct = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let (first, second) = tokio::join!(multiplexed.read_to_end(&mut one), direct.read_to_end(&mut other));
    first.unwrap();
    second.unwrap();
    assert_eq!((one, other), (vec![0, 1, 2], vec![0, 1, 2]));
}

static SLEPT: AtomicBool = AtomicBool::new(false);

/// Jumps by an hour when told to.
fn clock() -> Slept {
    Slept::of(Duration::from_secs(if SLEPT.load(Ordering::Relaxed) { 3600 } else { 0 }))
}

#[tokio::test]
async fn a_jump_of_the_clock_has_each_session_asked_and_the_dead_replaced() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    // Keepalives that would notice nothing within a test.
    let timing = Timing { keepalive: 5 * SHORT, probe: Duration::from_millis(300), ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    let mut stream = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let awake = tokio::spawn(keep::awake(Arc::downgrade(&link.pool), clock));
    // It has looked at the clock once.
    tokio::task::yield_now().await;
    sshd.stop_sessions();
    SLEPT.store(true, Ordering::Relaxed);
    let error = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.expect("it is noticed").unwrap_err();
    assert!(error.to_string().ends_with("it did not outlive this host's sleep"), "{error}");
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    awake.abort();
}
