//! Several paths to one host, and what each stage of reaching it says when it fails.
use super::*;
use crate::fault::Class;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn path(name: &str, to: &str) -> ConnectionPath {
    ConnectionPath { name: name.into(), destination: to.parse().unwrap() }
}

/// A path where `listener` takes connections and says nothing, and one to the server.
fn mute_then(sshd: &Sshd, listener: &std::net::TcpListener) -> Vec<ConnectionPath> {
    let mute = listener.local_addr().unwrap().to_string();
    vec![path("primary", &mute), path("lan", &format!("{}:{}", sshd.address, sshd.port))]
}

fn quick(sshd: &Sshd, timing: Timing) -> Link {
    Link::new(LinkConfig { timing, ..sshd.config() })
}

#[tokio::test]
async fn a_mute_first_path_costs_its_head_start_and_not_the_budget() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let mute = std::net::TcpListener::bind((sshd.address, 0)).unwrap();
    let paths = mute_then(&sshd, &mute);
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    // The mute path alone would take longer than the budget.
    let timing = Timing { banner: 3 * SHORT, head_start: Duration::from_millis(200), ..Timing::default() };
    let link = quick(&sshd, timing);
    link.open(&host(), &paths, endpoint, SHORT).await.unwrap();
    assert_eq!(link.exec(&host(), &paths, "true", b"", limits()).await.unwrap().path, "lan");
    // The second session began with the path that answers.
    mute.set_nonblocking(true).unwrap();
    mute.accept().unwrap();
    assert!(mute.accept().is_err(), "the mute path was asked once");
}

#[tokio::test]
async fn a_better_path_is_returned_to_and_open_streams_stay() {
    let Some(mut sshd) = sshd::start(Options::default()) else { return };
    let mute = std::net::TcpListener::bind((sshd.address, 0)).unwrap();
    let paths = mute_then(&sshd, &mute);
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = service.local_addr().unwrap();
    let timing = Timing {
        banner: Duration::from_secs(1),
        head_start: Duration::from_millis(100),
        better_path: Duration::from_millis(100),
        ..Timing::default()
    };
    let link = quick(&sshd, timing);
    let mut kept = link.open(&host(), &paths, endpoint, SHORT).await.unwrap();
    let (mut far, _) = service.accept().await.unwrap();
    // The first path comes back: the server listens there too.
    let port = mute.local_addr().unwrap().port();
    drop(mute);
    sshd.also_at(port);
    let deadline = Instant::now() + 3 * SHORT;
    loop {
        // The listener is away for a moment while it starts again.
        let path = link.exec(&host(), &paths, "true", b"", limits()).await.map(|output| output.path);
        if path.as_ref().is_ok_and(|path| path == "primary") {
            break;
        }
        assert!(Instant::now() < deadline, "still on {path:?}: {}", sshd.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    far.write_all(b"still here").await.unwrap();
    kept.read_exact(&mut [0; 10]).await.unwrap();
}

/// One attempt at a server that says `greeting` and then nothing.
async fn greeted(greeting: &'static [u8], close: bool) -> LinkError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(greeting).await;
            if !close {
                all.push(stream);
            }
        }
    });
    let brief = Duration::from_millis(300);
    let timing = Timing { banner: brief, handshake: brief, ..Timing::default() };
    let link = Link::new(LinkConfig { timing, ..LinkConfig::default() });
    link.exec(&host(), &single_path(address.to_string().parse().unwrap()), "true", b"", limits()).await.unwrap_err()
}

#[tokio::test]
async fn each_stage_that_fails_says_so_in_its_own_words() {
    let error = greeted(b"", false).await;
    assert_eq!((error.stage, error.class), (Stage::Banner, Class::Timeout));
    assert!(error.to_string().contains("sent no SSH identification within 0.3s"), "{error}");
    let error = greeted(b"220 mail ESMTP\r\n", false).await;
    assert_eq!((error.stage, error.class), (Stage::Banner, Class::Config));
    assert!(error.to_string().contains("is no SSH server: it said \"220 mail ESMTP\""), "{error}");
    let error = greeted(b"SSH-2.0-silent\r\n", false).await;
    assert_eq!((error.stage, error.class), (Stage::Handshake, Class::Timeout));
    assert!(error.to_string().contains("failed: no answer within 0.3s"), "{error}");
}

#[tokio::test]
async fn a_server_that_turns_everybody_away_is_tried_again_and_then_named() {
    let error = greeted(b"Exceeded MaxStartups\r\n", true).await;
    assert_eq!(error.class, Class::RateLimit);
    let text = error.to_string();
    assert!(text.contains("MaxStartups"), "{text}");
}

#[tokio::test]
async fn thirty_that_start_together_all_come_in_past_a_narrow_max_startups() {
    let narrow = vec!["MaxStartups 2:100:3".into()];
    let Some(sshd) = sshd::start(Options { config: narrow, ..Options::default() }) else { return };
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let (link, paths) = (sshd.link(), sshd.paths());
        let limits = ExecLimits { stdout: 1024, deadline: Duration::from_secs(100) };
        all.spawn(async move { link.exec(&host(), &paths, "echo in", b"", limits).await });
    }
    for output in all.join_all().await {
        assert_eq!(output.unwrap().stdout, b"in\n");
    }
    assert!(sshd.log().contains("MaxStartups"), "nobody was turned away: {}", sshd.log());
}

#[tokio::test]
async fn a_session_channel_beyond_max_sessions_is_said_as_such_and_the_session_stays() {
    let one = vec!["MaxSessions 1".into()];
    let Some(sshd) = sshd::start(Options { config: one, ..Options::default() }) else { return };
    let link = sshd.link();
    let held = link.exec_stream(&host(), &sshd.paths(), "cat", SHORT).await.unwrap();
    let error = link.exec(&host(), &sshd.paths(), "true", b"", limits()).await.unwrap_err();
    assert_eq!((error.stage, error.class), (Stage::Exec, Class::Refused));
    assert!(error.to_string().contains("its MaxSessions is reached"), "{error}");
    drop(held);
}
