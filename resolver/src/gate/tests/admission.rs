//! Who comes in, and which commands run.
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_verb_runs_in_process_and_its_program_is_ignored() {
    let rig = Rig::start().await;
    let output = rig.exec("'/opt/stado bin/stado' resolver snapshot", b"not read").await.unwrap();
    assert_eq!(output.stdout, b"resolver snapshot\n");
    assert_eq!((output.stderr.as_slice(), output.status), (&b"note\n"[..], Some(3)));
    let document = vec![b'd'; 600_000];
    let output = rig.exec("stado registry push - --if-generation 'a b' --json", &document).await.unwrap();
    let (line, rest) = output.stdout.split_at(43);
    assert_eq!(String::from_utf8_lossy(line), "registry push - --if-generation a b --json\n");
    assert_eq!(rest, document);
}

#[tokio::test]
async fn other_commands_are_refused_with_a_sentence_and_never_run() {
    let rig = Rig::start().await;
    for command in ["id", "stado resolver serve", "stado resolver snapshot; id", "sh -c 'id'", "", "stado 'unclosed"] {
        let output = rig.exec(command, b"").await.unwrap();
        assert_eq!((output.status, output.stdout.len()), (Some(126), 0), "{command}");
        let sentence = String::from_utf8(output.stderr).unwrap();
        assert!(sentence.starts_with("stado gate: ") && sentence.contains("sshd"), "{command}: {sentence}");
    }
    assert_eq!(rig.verbs.runs.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// A client of russh itself, for what the link never does.
struct Trusting;
impl russh::client::Handler for Trusting {
    type Error = russh::Error;
    async fn check_server_key(&mut self, _: &russh::keys::PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

async fn raw(rig: &Rig) -> russh::client::Handle<Trusting> {
    let mut client = russh::client::connect(Arc::default(), rig.address, Trusting).await.unwrap();
    let key = russh::keys::load_secret_key(rig.path("user"), None).unwrap();
    let key = russh::keys::PrivateKeyWithHashAlg::new(Arc::new(key), None);
    assert!(client.authenticate_publickey("anyone", key).await.unwrap().success());
    client
}

#[tokio::test]
async fn an_input_that_is_cut_off_is_never_taken_for_a_whole_one() {
    let rig = Rig::start().await;
    let client = raw(&rig).await;
    let cut = client.channel_open_session().await.unwrap();
    cut.exec(true, "stado registry push -").await.unwrap();
    cut.data_bytes("half a docu").await.unwrap();
    cut.close().await.unwrap();
    let mut whole = client.channel_open_session().await.unwrap();
    whole.exec(true, "stado resolver snapshot").await.unwrap();
    while !matches!(whole.wait().await, Some(russh::ChannelMsg::Close) | None) {}
    assert_eq!(rig.verbs.runs.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_channel_runs_one_command_and_a_client_few_at_a_time() {
    let rig = Rig::start().await;
    let client = raw(&rig).await;
    let mut channel = client.channel_open_session().await.unwrap();
    channel.exec(true, "stado registry push -").await.unwrap();
    channel.exec(true, "stado resolver snapshot").await.unwrap();
    let answers = [channel.wait().await.unwrap(), channel.wait().await.unwrap()];
    assert!(matches!(answers, [russh::ChannelMsg::Success, russh::ChannelMsg::Failure]), "{answers:?}");
    let mut open = vec![channel];
    let refused = loop {
        match client.channel_open_session().await {
            Ok(channel) => open.push(channel),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, russh::Error::ChannelOpenFailure(russh::ChannelOpenFailure::ResourceShortage)));
    assert_eq!(open.len(), 16);
}

#[tokio::test]
async fn a_key_comes_in_as_soon_as_it_is_listed_and_goes_as_soon_as_it_is_not() {
    let rig = Rig::start().await;
    let file = rig.path("authorized_keys");
    let listed = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "# nobody\n").unwrap();
    let error = rig.exec("stado resolver snapshot", b"").await.unwrap_err();
    assert_eq!((error.stage, error.class), (Stage::Auth, Class::Auth));
    assert!(error.to_string().contains(&format!("the host did not take {}", rig.path("user").display())), "{error}");
    std::fs::write(&file, &listed).unwrap();
    rig.exec("stado resolver snapshot", b"").await.unwrap();
}

#[tokio::test]
async fn revoking_a_key_ends_its_sessions_within_a_second() {
    let rig = Rig::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    rig.allow(endpoint);
    let link = rig.link();
    let mut stream = link.open(&host(), &rig.paths(), endpoint, SHORT).await.unwrap();
    let (mut service, _) = listener.accept().await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    service.read_exact(&mut [0; 5]).await.unwrap();
    let began = Instant::now();
    std::fs::write(rig.path("authorized_keys"), "").unwrap();
    let ended = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(service.read(&mut [0; 1]).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let refused = link.open(&host(), &rig.paths(), endpoint, SHORT).await.err().unwrap();
    assert_eq!(refused.stage, Stage::Auth);
}

#[tokio::test]
async fn an_expired_key_and_one_with_an_unknown_option_stay_out() {
    let rig = Rig::start().await;
    let key = std::fs::read_to_string(rig.path("user.pub")).unwrap();
    for options in [r#"expiry-time="20200101Z""#, r#"command="id""#, "cert-authority"] {
        std::fs::write(rig.path("authorized_keys"), format!("{options} {key}\n")).unwrap();
        assert_eq!(rig.exec("stado resolver snapshot", b"").await.unwrap_err().stage, Stage::Auth, "{options}");
    }
    std::fs::write(rig.path("authorized_keys"), format!("restrict,expiry-time=\"29990101\" {key}\n")).unwrap();
    rig.exec("stado resolver snapshot", b"").await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn keys_that_others_can_write_let_nobody_in() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::start().await;
    std::fs::set_permissions(rig.path("authorized_keys"), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(rig.exec("stado resolver snapshot", b"").await.unwrap_err().stage, Stage::Auth);
}

#[cfg(unix)]
#[tokio::test]
async fn the_host_key_is_made_once_and_kept_private() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::start().await;
    let file = rig.path("gate/host_ed25519");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&rig.path("gate"))), (0o600, 0o700));
    let first = std::fs::read(&file).unwrap();
    host_key::read_or_make(&file).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), first);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = host_key::read_or_make(&file).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()) && error.to_string().contains("chmod 600"), "{error}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&file, "nonsense").unwrap();
    assert!(host_key::read_or_make(&file).unwrap_err().to_string().contains(file.to_str().unwrap()));
}

#[tokio::test]
async fn a_held_port_is_named_and_refuses_only_the_gate() {
    let rig = Rig::start().await;
    let config =
        Config { bind: rig.address, host_key: rig.path("other"), authorized_keys: rig.path("authorized_keys") };
    let error = Gate::start(config, rig.verbs.clone()).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("could not bind {}: ", rig.address)), "{error}");
}

#[tokio::test]
async fn silent_strangers_are_closed_and_shut_the_gate_for_nobody() {
    let rig = Rig::start().await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(tokio::net::TcpStream::connect(rig.address).await.unwrap());
    }
    let began = Instant::now();
    rig.exec("stado resolver snapshot", b"").await.unwrap();
    assert!(began.elapsed() < SHORT, "no place was waited for");
    // The first ones gave their places up; the last ones are greeted, and closed at the handshake's deadline.
    let mut first = silent.swap_remove(0);
    tokio::time::timeout(SHORT, first.read_to_end(&mut Vec::new())).await.unwrap().ok();
    let (mut last, mut heard) = (silent.pop().unwrap(), Vec::new());
    tokio::time::timeout(SHORT, last.read_to_end(&mut heard)).await.unwrap().ok();
    assert!(heard.starts_with(b"SSH-2.0-StadoGate_"));
}

#[tokio::test]
async fn closing_the_gate_ends_its_sessions() {
    let mut rig = Rig::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    rig.allow(endpoint);
    let link = rig.link();
    let mut stream = link.open(&host(), &rig.paths(), endpoint, SHORT).await.unwrap();
    rig.gate.take().unwrap().close().await;
    let ended = tokio::time::timeout(SHORT, stream.read(&mut [0; 1])).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
}
