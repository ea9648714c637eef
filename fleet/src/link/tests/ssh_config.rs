//! The account's ssh_config: what it resolves to is what `ssh -G` says, and what it names is what is used.
use super::*;
use crate::fault::Class;
use crate::link::config::SshConfigFile;
use crate::link::ssh_config::{Route, resolve};
use std::path::{Path, PathBuf};

/// A home with `~/.ssh/config`.
struct Account(tempfile::TempDir);

impl Account {
    fn new(text: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        let account = Self(home);
        account.write("config", text);
        account
    }

    fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.file(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(".ssh").join(name)
    }

    fn config(&self) -> LinkConfig {
        let own = SshConfigFile { file: self.file("config"), home: self.0.path().to_owned() };
        let user = sshd::run("id", &["-un"]).trim().to_owned();
        LinkConfig { user, ssh_config: Some(own), ..LinkConfig::default() }
    }

    async fn route(&self, destination: &str) -> Result<Route, LinkError> {
        resolve(&destination.parse().unwrap(), &self.config()).await
    }

    async fn refusal(&self, destination: &str) -> String {
        let error = self.route(destination).await.unwrap_err();
        assert_eq!((error.stage, error.class), (Stage::Connect, Class::Config));
        error.sentence
    }
}

/// What `ssh -G` says, as far as a route holds it.
fn oracle(file: &Path, arguments: &[&str]) -> (String, String, String, Vec<String>, Vec<String>, bool, String) {
    let all = [&["-G", "-F", file.to_str().unwrap()], arguments].concat();
    let said = sshd::run("ssh", &all);
    let values = |keyword: &str| {
        let each = said.lines().filter_map(|line| line.strip_prefix(keyword)?.strip_prefix(' '));
        each.map(str::to_owned).collect::<Vec<_>>()
    };
    let one = |keyword: &str| values(keyword).pop().unwrap_or_default();
    let known = one("userknownhostsfile").split(' ').map(str::to_owned).collect();
    let accept = one("stricthostkeychecking") == "accept-new";
    (one("hostname"), one("port"), one("user"), values("identityfile"), known, accept, one("proxyjump"))
}

#[tokio::test]
async fn every_alias_resolves_as_ssh_resolves_it() {
    if !Path::new("/usr/bin/ssh").exists() {
        assert!(std::env::var_os("STADO_NO_SKIPS").is_none_or(|v| v != "1"), "ssh is missing");
        println!("skipped: ssh is missing (Debian: apt-get install openssh-client)");
        return;
    }
    let account = Account::new("");
    let more = account.file("more-*.conf");
    account.write(
        "config",
        &format!(
            "# for the fleet\nInclude {}\nHost web-? db !web-9\n  HostName %h.example.net\n  Port=2200\n  User \"ops\"\n  \
             IdentityFile /keys/first\n  IdentityFile  =  '/keys/a b'\n  SendEnv LANG\nMatch host *.example.net user ops\n  \
             UserKnownHostsFile /known/one /known/two\n  StrictHostKeyChecking accept-new\nMatch originalhost db localuser \
             nobody-such\n  Port 9\nMatch !originalhost db host web*\n\tProxyJump edge,me@mid:2022\nHost * !edge !mid\n  Port \
             2299\n  User everyone\n  IdentityFile /keys/last\n  UserKnownHostsFile /known/all\n  ServerAliveInterval 30\n",
            more.display()
        ),
    );
    account.write("more-1.conf", "Host included\n  HostName 10.9.8.7\n  Include more-deep\nHost web-2\n  Port 2002\n");
    account.write("more-2.conf", "Host web-2 included\n  Port 2003\n  User second\n");
    account.write(".more-3.conf", "Host *\n  Port 1\n");
    // ssh finds relative files in the home of the account that runs it, not in this one.
    account.write(
        "more-1.conf",
        &format!("Host included\n  HostName 10.9.8.7\n  Include {}\n", account.file("deep").display()),
    );
    account.write("deep", "Host other\n  Port 3\nHost incl*\n  Port 2004\n");
    let given: [(&str, &[&str]); 8] = [
        ("web-1", &["web-1"]),
        ("web-2", &["web-2"]),
        ("web-9", &["web-9"]),
        ("db", &["db"]),
        ("other", &["other"]),
        ("included", &["included"]),
        ("me@web-1", &["me@web-1"]),
        ("ops@10.1.2.3:77", &["-p", "77", "ops@10.1.2.3"]),
    ];
    for (destination, arguments) in given {
        let route = account.route(destination).await.unwrap();
        let (host, port, user, keys, known, accept, jumps) = oracle(&account.file("config"), arguments);
        assert_eq!((&route.host, route.port.to_string(), &route.user), (&host, port, &user), "{destination}");
        let texts = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
        assert_eq!(texts(&route.identity_files), keys, "{destination}");
        assert_eq!(texts(&route.known_hosts), known, "{destination}");
        assert_eq!(route.accept_new, accept, "{destination}");
        let ours = route.jumps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        assert_eq!(ours, jumps, "{destination}");
    }
}

#[tokio::test]
async fn what_is_not_honoured_is_refused_by_name_and_line_where_it_holds_and_nowhere_else() {
    for (line, name) in [
        ("ProxyCommand nc %h %p", "ProxyCommand"),
        ("BindAddress 10.0.0.1", "BindAddress"),
        ("Ciphers aes256-ctr", "Ciphers"),
        ("StrictHostKeyChecking no", "StrictHostKeyChecking"),
        ("PubkeyAuthentication no", "PubkeyAuthentication"),
        ("CertificateFile /x", "CertificateFile"),
        ("IdentityFile ${HOME}/key", "IdentityFile"),
        ("IdentityFile %C", "%C"),
        ("Port 70000", "70000"),
        ("Colour blue", "Colour"),
        ("HostName \"a b\"", "HostName"),
        ("Include other-*/config", "Include"),
    ] {
        let account = Account::new(&format!("Host far\n  Compression yes\n  {line}\n"));
        let sentence = account.refusal("far").await;
        assert!(sentence.contains(name) && sentence.contains("config:3: `"), "{line}: {sentence}");
        assert_eq!(account.route("near").await.unwrap().host, "near");
    }
    let account = Account::new("Match exec \"true\"\n  Port 2\n");
    assert!(account.refusal("far").await.contains("config:1: `Match exec`"));
    let account = Account::new("Match host near exec \"true\"\n  Port 2\n");
    assert_eq!(account.route("far").await.unwrap().port, 22, "its first criterion does not hold");
    let account =
        Account::new("IgnoreUnknown Col*,Shape\nColour blue\nShape=round\nProxyCommand none\nProxyJump edge\n");
    assert!(account.route("far").await.unwrap().jumps.is_empty(), "ProxyCommand came first");
    let account = Account::new("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n");
    assert!(account.refusal("a").await.contains("in a circle"));
    let account = Account::new("Host *\n  ProxyJump edge\n");
    assert!(account.route("edge").await.unwrap().jumps.is_empty());
    let account = Account::new("Host far\n  Port 2\n");
    std::fs::set_permissions(account.file("config"), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    assert!(account.refusal("far").await.contains("chmod go-w"));
}

/// Lines for a host that a test has made.
fn block(alias: &str, sshd: &Sshd, more: &str) -> String {
    format!(
        "Host {alias}\n  HostName {}\n  Port {}\n  IdentityFile {}\n  UserKnownHostsFile {}\n{more}",
        sshd.address,
        sshd.port,
        sshd.path("user").display(),
        sshd.path("known_hosts").display()
    )
}

fn to(alias: &str) -> Vec<ConnectionPath> {
    single_path(alias.parse().unwrap())
}

fn logins(sshd: &Sshd) -> usize {
    sshd.log().matches("Accepted publickey").count()
}

#[tokio::test]
async fn a_host_behind_others_is_reached_over_one_session_to_each_and_its_loss_is_named() {
    let (Some(mut edge), Some(mid), Some(inner)) =
        (sshd::start(Options::default()), sshd::start(Options::default()), sshd::start(Options::default()))
    else {
        return;
    };
    let text = block("edge", &edge, "")
        + &block("mid", &mid, "  ProxyJump edge\n")
        + &block("inner", &inner, "  ProxyJump mid\n")
        + &block("beside", &inner, "  ProxyJump edge,mid\n");
    let account = Account::new(&text);
    let link = Link::new(account.config());
    for alias in ["inner", "beside"] {
        let out = link.exec(&alias.parse().unwrap(), &to(alias), "echo in", b"", limits()).await.unwrap();
        assert_eq!(out.stdout, b"in\n");
    }
    assert_eq!([logins(&edge), logins(&mid), logins(&inner)], [1, 1, 2], "the way is shared");
    edge.kill();
    until("the session behind it to be lost", || link.pool.sessions().iter().all(|s| s.has_ended())).await;
    let error = link.exec(&"inner".parse().unwrap(), &to("inner"), "true", b"", limits()).await.unwrap_err();
    assert!(error.sentence.contains("through the jump host mid") && error.sentence.contains("edge"), "{error}");
}

#[tokio::test]
async fn a_key_of_a_host_that_is_not_listed_is_taken_once_where_accept_new_says_so_and_never_changed() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    sshd.known_hosts("# nothing yet");
    let account = Account::new(&block("far", &sshd, "  StrictHostKeyChecking accept-new\n"));
    let run = async || {
        let link = Link::new(account.config());
        link.exec(&host(), &to("far"), "true", b"", limits()).await
    };
    run().await.unwrap();
    let known = std::fs::read_to_string(sshd.path("known_hosts")).unwrap();
    assert!(known.ends_with(&format!("{} {}\n", sshd.listed(), sshd.host_key("ed25519"))), "{known}");
    run().await.unwrap();
    assert_eq!(std::fs::read_to_string(sshd.path("known_hosts")).unwrap(), known, "it is written once");
    sshd::keygen("ed25519", &sshd.path("another"));
    let another = std::fs::read_to_string(sshd.path("another.pub")).unwrap();
    sshd.known_hosts(&format!("{} {}", sshd.listed(), another.trim()));
    assert_eq!(run().await.unwrap_err().stage, Stage::HostKey);
}

#[tokio::test]
async fn an_alias_of_the_host_key_decides_the_line_that_is_looked_up() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    sshd.known_hosts(&format!("the-tower {}", sshd.host_key("ed25519")));
    for (more, accepted) in [("", false), ("  HostKeyAlias the-tower\n", true)] {
        let account = Account::new(&block("far", &sshd, more));
        let run = Link::new(account.config()).exec(&host(), &to("far"), "true", b"", limits()).await;
        assert_eq!(run.is_ok(), accepted, "{more:?}");
    }
}
