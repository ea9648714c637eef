//! Users' keys: files, certificates, the agent.
use super::*;
use crate::fault::Class;
use std::path::Path;
use std::process::{Child, Command, Stdio};

async fn enter(sshd: &Sshd, config: LinkConfig) -> Result<ExecOutput, LinkError> {
    Link::new(config).exec(&host(), &sshd.paths(), "echo in", b"", limits()).await
}

fn authorize(sshd: &Sshd, lines: &str) {
    std::fs::write(sshd.path("authorized_keys"), format!("{lines}\n")).unwrap();
}

#[tokio::test]
async fn an_unknown_host_key_is_refused_with_the_next_step() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    sshd.known_hosts("");
    let error = enter(&sshd, sshd.config()).await.unwrap_err();
    assert_eq!((error.stage, error.class), (Stage::HostKey, Class::Auth));
    let text = error.to_string();
    assert!(text.contains("SHA256:") && text.contains(&sshd.listed()) && text.contains("ssh-keyscan"), "{text}");
}

#[tokio::test]
async fn files_are_tried_in_order_and_every_reason_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let Some(sshd) = sshd::start(Options::default()) else { return };
    for name in ["stranger", "open", "locked"] {
        sshd::keygen("ed25519", &sshd.path(name));
    }
    std::fs::set_permissions(sshd.path("open"), std::fs::Permissions::from_mode(0o644)).unwrap();
    sshd::run("ssh-keygen", &["-q", "-p", "-N", "secret", "-f", sshd.path("locked").to_str().unwrap()]);
    std::fs::write(sshd.path("broken"), "nonsense").unwrap();
    std::fs::set_permissions(sshd.path("broken"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let names = ["missing", "stranger", "open", "locked", "broken"];
    let mut config = LinkConfig { identity_files: names.map(|n| sshd.path(n)).to_vec(), ..sshd.config() };
    let error = enter(&sshd, config.clone()).await.unwrap_err();
    assert_eq!((error.stage, error.class), (Stage::Auth, Class::Auth));
    let text = error.to_string();
    let said = |name: &str, what: &str| text.contains(&format!("{} {what}", sshd.path(name).display()));
    assert!(text.contains(&format!("the host did not take {}", sshd.path("stranger").display())), "{text}");
    assert!(said("open", "is open to others (mode 0644)") && said("locked", "is encrypted"), "{text}");
    assert!(said("broken", "is no usable private key") && !text.contains("missing"), "{text}");
    config.identity_files.push(sshd.path("user"));
    assert_eq!(enter(&sshd, config).await.unwrap().stdout, b"in\n");
}

#[tokio::test]
async fn key_files_that_are_not_there_are_named_when_nothing_else_can_be_offered() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let gone = ["gone", "gone-too"].map(|name| sshd.path(name));
    let config = LinkConfig { identity_files: gone.to_vec(), ..sshd.config() };
    let error = enter(&sshd, config).await.unwrap_err().to_string();
    let [first, second] = gone.map(|path| path.display().to_string());
    let wanted = format!("there is no key to offer; {first} is not there; {second} is not there");
    assert!(error.contains(&wanted), "{error}");
}

#[tokio::test]
async fn keys_of_every_usual_type_come_in() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    for kind in ["rsa", "ecdsa"] {
        sshd::keygen(kind, &sshd.path(kind));
        authorize(&sshd, &std::fs::read_to_string(sshd.path(&format!("{kind}.pub"))).unwrap());
        enter(&sshd, LinkConfig { identity_files: vec![sshd.path(kind)], ..sshd.config() }).await.unwrap();
    }
    // As `ssh-keygen -m PEM` wrote them for decades.
    let old = sshd.path("old");
    sshd::run("ssh-keygen", &["-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", old.to_str().unwrap()]);
    authorize(&sshd, &std::fs::read_to_string(sshd.path("old.pub")).unwrap());
    enter(&sshd, LinkConfig { identity_files: vec![old], ..sshd.config() }).await.unwrap();
}

#[tokio::test]
async fn too_many_keys_are_told_in_the_words_of_the_host() {
    let Some(sshd) = sshd::start(Options { config: vec!["MaxAuthTries 2".into()], ..Options::default() }) else {
        return;
    };
    let names = ["a", "b", "c"];
    for name in names {
        sshd::keygen("ed25519", &sshd.path(name));
    }
    let config = LinkConfig { identity_files: names.map(|n| sshd.path(n)).to_vec(), ..sshd.config() };
    let error = enter(&sshd, config).await.unwrap_err();
    assert!(error.to_string().contains("Too many authentication failures"), "{error}");
}

/// A server that takes only certificates of `ca`, and `<name>-cert.pub` beside a new key.
fn certified(kind: &str, arguments: &[&str]) -> Option<Sshd> {
    let mut sshd = sshd::start(Options::default())?;
    sshd::keygen("ed25519", &sshd.path("ca"));
    sshd::keygen(kind, &sshd.path("key"));
    let (ca, public) = (sshd.path("ca"), sshd.path("key.pub"));
    let mut sign = vec!["-q", "-s", ca.to_str().unwrap(), "-I", "test user"];
    sign.extend(arguments);
    sign.push(public.to_str().unwrap());
    sshd::run("ssh-keygen", &sign);
    authorize(&sshd, "");
    sshd.reconfigure(&format!("TrustedUserCAKeys {}", sshd.path("ca.pub").display()));
    Some(sshd)
}

#[tokio::test]
async fn a_certificate_beside_a_key_comes_in() {
    for kind in ["ed25519", "rsa", "ecdsa"] {
        let user = sshd::run("id", &["-un"]);
        let Some(sshd) = certified(kind, &["-n", user.trim()]) else { return };
        let config = LinkConfig { identity_files: vec![sshd.path("key")], ..sshd.config() };
        assert_eq!(enter(&sshd, config).await.unwrap().stdout, b"in\n", "{kind}");
        assert!(sshd.log().contains("-CERT SHA256"), "{kind}: {}", sshd.log());
    }
}

#[tokio::test]
async fn an_expired_certificate_is_named_and_not_offered() {
    let user = sshd::run("id", &["-un"]);
    let Some(sshd) = certified("ed25519", &["-n", user.trim(), "-V", "20200101:20210101"]) else { return };
    let config = LinkConfig { identity_files: vec![sshd.path("key")], ..sshd.config() };
    let error = enter(&sshd, config).await.unwrap_err();
    let wanted = format!("{}-cert.pub is expired or not yet valid", sshd.path("key").display());
    assert!(error.to_string().contains(&wanted), "{error}");
}

/// A real agent on a socket of its own.
struct AgentProcess(Child);

impl AgentProcess {
    async fn start(socket: &Path) -> Self {
        let agent = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the agent's socket", || socket.exists()).await;
        Self(agent)
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn add(socket: &Path, key: &Path) {
    let status =
        Command::new("ssh-add").arg("-q").arg(key).env("SSH_AUTH_SOCK", socket).stdin(Stdio::null()).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn the_agent_signs_with_keys_and_certificates() {
    for kind in ["ed25519", "rsa"] {
        let user = sshd::run("id", &["-un"]);
        let Some(sshd) = certified(kind, &["-n", user.trim()]) else { return };
        let socket = sshd.path("agent");
        let _agent = AgentProcess::start(&socket).await;
        add(&socket, &sshd.path("key"));
        let config = LinkConfig { identity_files: vec![], agent_socket: Some(socket.clone()), ..sshd.config() };
        enter(&sshd, config.clone()).await.unwrap();
        authorize(&sshd, &std::fs::read_to_string(sshd.path("key.pub")).unwrap());
        std::fs::remove_file(sshd.path("key-cert.pub")).unwrap();
        let status = Command::new("ssh-add").args(["-q", "-D"]).env("SSH_AUTH_SOCK", &socket).status().unwrap();
        assert!(status.success());
        add(&socket, &sshd.path("key"));
        enter(&sshd, config).await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_that_never_answers_costs_its_deadline_only() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    let socket = sshd.path("silent");
    let _listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let timing = Timing { agent: Duration::from_millis(200), ..Timing::default() };
    let config = LinkConfig { agent_socket: Some(socket.clone()), timing, ..sshd.config() };
    // With a file that works it is never asked.
    enter(&sshd, config.clone()).await.unwrap();
    let error = enter(&sshd, LinkConfig { identity_files: vec![], ..config }).await.unwrap_err();
    let wanted = format!("the agent at {} did not answer within 0.2s", socket.display());
    assert!(error.to_string().contains(&wanted), "{error}");
}
