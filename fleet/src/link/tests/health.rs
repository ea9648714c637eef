//! Sessions that are dead without a word.
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Keepalives that would notice nothing within a test.
fn patient() -> Timing {
    Timing { keepalive: 5 * SHORT, probe: Duration::from_millis(300), ..Timing::default() }
}

#[tokio::test]
async fn a_session_that_is_mute_when_asked_is_replaced_before_anything_is_sent() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = Link::new(LinkConfig { timing: patient(), ..sshd.config() });
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    let _first = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap();
    sshd.stop_sessions();
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    assert_eq!(link.exec(&host(), &sshd.paths(), "echo on", b"", limits()).await.unwrap().stdout, b"on\n");
}

#[tokio::test]
async fn a_command_that_runs_when_its_host_goes_mute_is_given_up_and_not_sent_again() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let link = Link::new(LinkConfig { timing: patient(), ..sshd.config() });
    let count = sshd.path("count");
    let command = format!("echo x >>'{}'; sleep 600", count.display());
    let (far, paths) = (link.clone(), sshd.paths());
    let long = ExecLimits { deadline: 5 * SHORT, ..limits() };
    let running = tokio::spawn(async move { far.exec(&host(), &paths, &command, b"", long).await });
    until("the command to run", || count.exists()).await;
    sshd.stop_sessions();
    let error = tokio::time::timeout(SHORT, running).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().contains("the host gave no sign of life for"), "{error}");
    assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n");
}

#[tokio::test]
async fn after_sleep_each_session_is_asked_once_and_only_the_dead_are_replaced() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let Some(other) = sshd::start(Options::default()) else { return };
    let files = [&sshd, &other].map(|s| s.config()).map(|c| (c.identity_files, c.known_hosts));
    let [(mut keys, mut known), (more_keys, more_known)] = files;
    keys.extend(more_keys);
    known.extend(more_known);
    let config = LinkConfig { timing: patient(), identity_files: keys, known_hosts: known, ..sshd.config() };
    let link = Link::new(config);
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    let mut dead = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
    let mut alive = link.open(&"other".parse().unwrap(), &other.paths(), endpoint, SHORT).await.unwrap();
    let _dead_far = service.accept().await.unwrap();
    let (mut far, _) = service.accept().await.unwrap();
    sshd.stop_sessions();
    link.pool.woke().await;
    let error = tokio::time::timeout(SHORT, dead.read(&mut [0; 1])).await.unwrap().unwrap_err();
    assert!(error.to_string().ends_with("it did not outlive this host's sleep"), "{error}");
    far.write_all(b"still here").await.unwrap();
    alive.read_exact(&mut [0; 10]).await.unwrap();
    link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
}

#[tokio::test]
async fn a_host_that_stops_answering_is_noticed_under_sixteen_uploads_too() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let timing = Timing { keepalive: Duration::from_millis(500), keepalive_max: 1, ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..sshd.config() });
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = service.accept().await {
            tokio::spawn(async move { tokio::io::copy(&mut stream, &mut tokio::io::sink()).await });
        }
    });
    let mut uploads = tokio::task::JoinSet::new();
    let went_up = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..16 {
        let mut stream = link.open(&host(), &sshd.paths(), endpoint, SHORT).await.unwrap();
        let went_up = went_up.clone();
        uploads.spawn(async move {
            loop {
                if let Err(error) = stream.write_all(&[7; 32 * 1024]).await {
                    return error;
                }
                went_up.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
    }
    until("the uploads to run", || went_up.load(std::sync::atomic::Ordering::Relaxed) > 64).await;
    sshd.stop_sessions();
    let ended = tokio::time::timeout(SHORT, uploads.join_all()).await.expect("a dead host is noticed under load");
    for error in ended {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted, "{error}");
    }
}
