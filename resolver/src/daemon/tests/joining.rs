//! Hosts that join over the gate of a daemon of this process: cut at each step and done again, several at once, with
//! invitations that are no good, and out again.
use super::support::*;
use stado_fleet::authority::RegistryError;
use stado_fleet::disk;
use stado_fleet::document::Document;
use stado_fleet::edit::{Member, found};
use stado_fleet::fault::Class;
use stado_fleet::join::{self, Asked, Invitation, Joined, Joiner, Pending, Shelf, Step};
use stado_fleet::last_good::LastGood;
use stado_fleet::link::{ExecLimits, Link, LinkConfig};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first host of a fleet, with its daemon.
struct First {
    host: Host,
    gate: u16,
    host_key: String,
    _running: Running,
}

impl First {
    async fn start() -> Self {
        let mut host = Host::new();
        host.target = Some("tower");
        let gate = port();
        let file = host.home().join("gate/host_ed25519");
        let host_key = join::public_key(&join::read_or_make(&file).unwrap());
        let own = join::public_key(&join::read_or_make(&host.home().join("id")).unwrap());
        host.gate = Some(crate::gate::Config {
            bind: ([127, 0, 0, 1], gate).into(),
            host_key: file,
            authorized_keys: host.home().join("gate/authorized_keys"),
        });
        host.api_override = Some(([127, 0, 0, 1], host.api).into());
        let member = Member {
            name: "tower".into(),
            release_platform: "linux-amd64".into(),
            ssh: Some(format!("u@127.0.0.1:{gate}")),
            command: "/opt/stado/bin/stado".into(),
            host_keys: vec![host_key.clone()],
            key: own,
        };
        host.push(found(&member).value()).await;
        let running = host.start();
        host.serving().await;
        Self { host, gate, host_key, _running: running }
    }

    fn invite(&self, seconds: i64) -> Invitation {
        self.invite_to(seconds, self.gate, self.host_key.clone())
    }

    fn invite_to(&self, seconds: i64, gate: u16, host_key: String) -> Invitation {
        let now = jiff::Timestamp::now();
        let expires = now + jiff::SignedDuration::from_secs(seconds);
        let authority = ("tower".parse().unwrap(), "/opt/stado/bin/stado".to_owned());
        let ways = vec![format!("u@127.0.0.1:{gate}").parse().unwrap()];
        let invitation = Invitation::new(authority, ways, vec![host_key], expires, None).unwrap();
        Shelf::new(&self.host.home()).change(|book| book.add(&invitation, now)).unwrap();
        invitation
    }

    async fn registry(&self) -> Document {
        use stado_fleet::store::RegistryStore;
        Document::parse(self.host.store.read().await.unwrap().unwrap().bytes).unwrap()
    }

    async fn hosts(&self) -> Vec<String> {
        let registry = self.registry().await;
        let targets = registry.section("targets").unwrap().as_array().unwrap();
        targets.iter().map(|target| target["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// A host with nothing but a home.
struct Newcomer {
    dir: tempfile::TempDir,
}

impl Newcomer {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("stado")
    }

    fn link(&self) -> LinkConfig {
        LinkConfig {
            user: "u".into(),
            identity_files: vec![self.home().join("resolver-ssh-key")],
            known_hosts: vec![self.home().join("known_hosts")],
            ..LinkConfig::default()
        }
    }

    fn asked(invitation: &Invitation, name: &str) -> Asked {
        let pending =
            Pending { invitation: invitation.reveal(), name: name.parse().unwrap(), address: None, door: None };
        Asked { pending, release_platform: "linux-amd64".into(), command: "/usr/bin/stado".into() }
    }

    async fn join(&self, invitation: &Invitation, name: &str) -> Result<Joined, RegistryError> {
        Joiner::new(&self.home(), &self.link()).join(&Self::asked(invitation, name), &mut |_| Ok(())).await
    }

    /// Joins until `last` is done, as if the power went then.
    async fn join_until(&self, invitation: &Invitation, name: &str, last: Step) {
        let mut cut = |step| if step == last { Err(RegistryError::new(Class::Unknown, "cut")) } else { Ok(()) };
        let ended = Joiner::new(&self.home(), &self.link()).join(&Self::asked(invitation, name), &mut cut).await;
        assert_eq!(ended.unwrap_err().sentence, "cut", "{last:?}");
    }

    fn reads(&self, file: &str) -> String {
        std::fs::read_to_string(self.home().join(file)).unwrap_or_default()
    }

    /// What a host has that is in the fleet, and nothing more.
    fn has_joined(&self, name: &str) {
        assert!(
            self.reads("config.json").contains(&format!("\"target\": \"{name}\"")),
            "{}",
            self.reads("config.json")
        );
        let copy = LastGood::new(self.home().join("cache")).read().unwrap().unwrap();
        assert!(copy.snapshot.valid.registry.targets.contains_key(name));
        assert_eq!(self.reads("known_hosts").lines().count(), 1);
        for secret in ["joining.json", "joining-key"] {
            assert!(!self.home().join(secret).exists(), "{secret} is left");
        }
        for file in all_files(&self.home()) {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{} is open to others", file.display());
        }
    }
}

fn all_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_join_that_is_cut_after_any_step_is_brought_to_its_end_by_the_next_one() {
    let first = First::start().await;
    for (n, step) in Step::ALL.into_iter().enumerate() {
        let (invitation, new, name) = (first.invite(600), Newcomer::new(), format!("host-{n}"));
        new.join_until(&invitation, &name, step).await;
        let kept = Pending::read(&new.home()).unwrap();
        assert_eq!(kept.is_some(), step != Step::Done, "{step:?}: nobody has to paste again");
        let joined = new.join(&invitation, &name).await.unwrap();
        let was_in = !matches!(step, Step::Kept | Step::Keys | Step::Pinned);
        assert_eq!((joined.welcome.target.as_str(), joined.welcome.again), (name.as_str(), was_in), "{step:?}");
        new.has_joined(&name);
    }
    assert_eq!(first.hosts().await.len(), 1 + Step::ALL.len(), "each once");
    let book = Shelf::new(&first.host.home()).read().unwrap();
    assert!(book.warnings().is_empty(), "{book:?}");
}

#[tokio::test]
async fn five_hosts_join_at_the_same_moment() {
    let first = First::start().await;
    let hosts: Vec<(Invitation, Newcomer)> = (0..5).map(|_| (first.invite(600), Newcomer::new())).collect();
    let joining = hosts
        .iter()
        .enumerate()
        .map(|(n, (invitation, new))| async move { new.join(invitation, &format!("host-{n}")).await });
    for joined in futures_util::future::join_all(joining).await {
        assert!(!joined.unwrap().welcome.again);
    }
    hosts.iter().enumerate().for_each(|(n, (_, new))| new.has_joined(&format!("host-{n}")));
    let mut names = first.hosts().await;
    names.sort();
    assert_eq!(names, ["host-0", "host-1", "host-2", "host-3", "host-4", "tower"]);
    assert_eq!(first.registry().await.generation().unwrap().0, 1, "no service changes by it");
}

#[tokio::test]
async fn an_invitation_that_is_no_good_lets_nobody_in_and_says_why() {
    let first = First::start().await;
    let refused = async |invitation: &Invitation, name: &str| Newcomer::new().join(invitation, name).await.unwrap_err();

    let expired = refused(&first.invite(-5), "late").await;
    assert!(expired.sentence.starts_with("tower did not let this host in: invitation "), "{expired}");
    assert!(expired.sentence.contains(" expired at "), "{expired}");
    assert_eq!(expired.class, Class::Refused);

    let used = first.invite(600);
    let (thief, owner) = (Newcomer::new(), Newcomer::new());
    thief.join(&used, "thief").await.unwrap();
    let too_late = owner.join(&used, "laptop").await.unwrap_err();
    assert!(too_late.sentence.contains("by thief from 127.0.0.1"), "{too_late}");
    let warned = until("the owner of the fleet is told", || {
        let state = first.host.state()?;
        state.warnings.into_iter().find(|warning| warning.contains("may have stolen it"))
    });
    assert!(warned.await.contains("(as laptop), after thief had joined"));

    // Changed on its way by somebody who makes it look whole: another secret, another host key.
    let strange = Invitation::new(
        ("tower".parse().unwrap(), "/opt/stado/bin/stado".into()),
        used.ways.clone(),
        used.host_keys.clone(),
        used.expires,
        None,
    );
    let tampered = refused(&strange.unwrap(), "evil").await;
    assert_eq!(tampered.class, Class::Auth);
    assert!(tampered.sentence.contains("does not know the secret of invitation"), "{tampered}");
    let other_key = join::public_key(&join::read_or_make(&Newcomer::new().home().join("k")).unwrap());
    let swapped = refused(&first.invite_to(600, first.gate, other_key), "victim").await;
    assert!(
        swapped.sentence.contains("is not the host that the invitation names, so nothing was said to it"),
        "{swapped}"
    );

    // A host that is not there: the invitation stays good.
    let good = first.invite(600);
    let away = Invitation::parse(&first.invite_to(600, port(), first.host_key.clone()).reveal()).unwrap();
    let unreached = refused(&away, "laptop").await;
    assert!(unreached.class.retry_helps() && unreached.sentence.starts_with("tower was not reached: "), "{unreached}");
    Newcomer::new().join(&good, "laptop").await.unwrap();
    assert_eq!(first.hosts().await, ["tower", "thief", "laptop"]);
}

const LIMITS: ExecLimits = ExecLimits { stdout: 1 << 20, deadline: Duration::from_secs(20) };

#[tokio::test]
async fn an_invitation_joins_and_does_nothing_else_and_a_host_that_left_is_shut_out() {
    let first = First::start().await;
    let (invitation, new) = (first.invite(600), Newcomer::new());
    let key = new.home().join("guest");
    let text = invitation.key().to_openssh(russh::keys::ssh_key::LineEnding::LF).unwrap();
    disk::replace(&key, text.as_bytes()).unwrap();
    let pinned = format!("[127.0.0.1]:{} {}\n", first.gate, first.host_key);
    disk::replace(&new.home().join("known_hosts"), pinned.as_bytes()).unwrap();
    let link = |identity: &Path| Link::new(LinkConfig { identity_files: vec![identity.to_owned()], ..new.link() });
    let tower = "tower".parse().unwrap();
    let paths = stado_fleet::link::single_path(format!("u@127.0.0.1:{}", first.gate).parse().unwrap());
    let run = async |identity: &Path, verb: &str| {
        let (link, command) = (link(identity), format!("stado {verb}"));
        link.exec(&tower, &paths, &command, b"{}", LIMITS).await
    };
    for verb in ["resolver snapshot", "registry push -", "fleet leave", "resolver watch"] {
        let output = run(&key, verb).await.unwrap();
        assert_eq!(output.status, Some(126), "{verb}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("an invitation joins and does nothing else"));
    }
    let nonsense = run(&key, "fleet admit").await.unwrap();
    assert_eq!(nonsense.status, Some(2), "{}", String::from_utf8_lossy(&nonsense.stderr));
    let endpoint = std::net::SocketAddr::from(([127, 0, 0, 1], first.host.api));
    assert!(link(&key).open(&tower, &paths, endpoint, LIMITS.deadline).await.is_err());

    new.join(&invitation, "laptop").await.unwrap();
    let own = new.home().join("resolver-ssh-key");
    assert_eq!(run(&own, "resolver snapshot").await.unwrap().status, Some(0));
    let refused = run(&own, "fleet admit").await.unwrap();
    assert_eq!(refused.status, Some(2), "a member has no invitation");
    // The answer comes although the key is gone with it, and nobody comes in with it any more.
    let kept = link(&own);
    let left = kept.exec(&tower, &paths, "stado fleet leave", b"", LIMITS).await.unwrap();
    assert_eq!(
        (left.status, String::from_utf8_lossy(&left.stdout).trim()),
        (Some(0), r#"{"left":"laptop","changed":true}"#)
    );
    assert_eq!(first.hosts().await, ["tower"]);
    let shut = async { while run(&own, "resolver snapshot").await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(20), shut).await.unwrap();
}
