//! What this host knows about itself before any registry is read: names, places, keys.
use super::{ConfigError, Env, FleetFile, Storage, wrong};
use serde_json::Value;
use stado_fleet::ledger::PublishedPaths;
use stado_fleet::link::{LinkConfig, SshConfigFile, Timing};
use stado_fleet::name::TargetName;
use stado_resolver::bridge::Policy;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Settings of the fleet's side of this host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// `~/.stado`.
    pub stado_home: PathBuf,
    /// Who this host is, when somebody said so (`STADO_TARGET`, `target` in `~/.stado/config.json`).
    pub target: Option<TargetName>,
    /// Who it has to be (`--target`): no other name is taken from it.
    pub asked: Option<TargetName>,
    /// The machine's hostname as the system gives it.
    pub hostname: String,
    /// The account.
    pub user: String,
    /// `api_bind` in `~/.stado/config.json`: overrides the registry's.
    pub api_bind: Option<SocketAddr>,
    /// `gate.bind` in `~/.stado/config.json`: the gate is off without it.
    pub gate_bind: Option<SocketAddr>,
    /// `publish` in `~/.stado/config.json`: what containers of this host may publish.
    pub publish: Policy,
    /// `sshd.authorized_keys` in `~/.stado/config.json`: the file in which hosts of the fleet get a line each.
    pub sshd_keys: Option<PathBuf>,
    /// The published files.
    pub published: PublishedPaths,
    /// Forward markers.
    pub forwards_dir: PathBuf,
    /// Where the registry is kept.
    pub storage: Storage,
    /// `object_api`, as it stands in the configuration file.
    pub object_api: Option<serde_json::Value>,
    /// Keys and host keys.
    pub link: LinkConfig,
    /// Address of the host from which this process was started over SSH.
    pub ssh_client: Option<String>,
}

impl HostConfig {
    /// Reads everything. `target` is the flag.
    pub fn read(env: &Env, target: Option<&str>) -> Result<Self, ConfigError> {
        let home = env.home()?;
        let stado_home = home.join(".stado");
        let own_path = stado_home.join("config.json");
        let own = FleetFile::read(&own_path)?.unwrap_or_default();
        let state =
            absolute(env, "STADO_RESOLVER_STATE_FILE")?.unwrap_or_else(|| stado_home.join("resolver-state.json"));
        let user = user(env, &home);
        let own_target = own_target(env, &own, &own_path)?;
        let file = FleetFile::find(env)?;
        Ok(Self {
            asked: asked(target, own_target.as_ref())?,
            target: own_target,
            hostname: hostname(),
            api_bind: loopback(&own, &own_path, "api_bind")?,
            gate_bind: address(&own, &own_path, "gate.bind")?,
            publish: publish(&own, &own_path)?,
            sshd_keys: own.text("sshd.authorized_keys")?.map(|path| env.expand(&path)).transpose()?,
            published: PublishedPaths::beside(&state),
            forwards_dir: env.path("STADO_FORWARDS_DIR").unwrap_or_else(|| stado_home.join("forwards")),
            storage: Storage::read(&file, env)?,
            object_api: file.value("object_api").cloned(),
            link: link(env, &home, &stado_home, &user)?,
            // "client port server port", set by sshd.
            ssh_client: env.text("SSH_CONNECTION")?.and_then(|c| c.split(' ').next().map(str::to_owned)),
            stado_home,
            user,
        })
    }
}

impl HostConfig {
    /// `ann@desk`: the account on this machine, to name what belongs to it.
    pub fn whoami(env: &Env) -> Result<String, ConfigError> {
        Ok(format!("{}@{}", user(env, &env.home()?), hostname()))
    }

    /// Names of what a daemon would have to be started again for, when `other` is read in this one's place.
    pub fn changed(&self, other: &Self) -> Vec<&'static str> {
        let all = [
            ("target", (&self.target, &self.asked) != (&other.target, &other.asked)),
            ("api_bind", self.api_bind != other.api_bind),
            ("gate.bind", self.gate_bind != other.gate_bind),
            ("publish", self.publish != other.publish),
            ("sshd.authorized_keys", self.sshd_keys != other.sshd_keys),
            ("storage", self.storage != other.storage),
            ("object_api", self.object_api != other.object_api),
        ];
        all.into_iter().filter_map(|(name, changed)| changed.then_some(name)).collect()
    }
}

fn own_target(env: &Env, own: &FleetFile, path: &Path) -> Result<Option<TargetName>, ConfigError> {
    match (env.text("STADO_TARGET")?, own.text("target")?) {
        (Some(text), _) => parsed("STADO_TARGET", &text).map(Some),
        (None, Some(text)) => parsed(&format!("target in {}", path.display()), &text).map(Some),
        (None, None) => Ok(None),
    }
}

fn parsed(source: &str, text: &str) -> Result<TargetName, ConfigError> {
    text.parse().map_err(|e| ConfigError(format!("{source} is {text:?}: it {e}")))
}

/// The flag says which target is meant; it does not make this host another one. Where only the hostname tells who this
/// host is, a registry has to be read first.
fn asked(flag: Option<&str>, here: Option<&TargetName>) -> Result<Option<TargetName>, ConfigError> {
    let Some(asked) = flag.map(|text| parsed("--target", text)).transpose()? else { return Ok(None) };
    match here.filter(|here| **here != asked) {
        Some(here) => wrong(format!("resolver target \"{asked}\" does not match this host (\"{here}\")")),
        None => Ok(Some(asked)),
    }
}

fn publish(own: &FleetFile, path: &Path) -> Result<Policy, ConfigError> {
    let at = |key: &str| format!("publish.{key} in {}", path.display());
    let labels = match own.value("publish.labels") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(labels)) => *labels,
        Some(_) => return wrong(format!("{} must be true or false", at("labels"))),
    };
    let consumers = match own.value("publish.consumers") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all
            .iter()
            .map(|one| one.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| ConfigError(format!("{} must be a list of names", at("consumers"))))?,
        Some(_) => return wrong(format!("{} must be a list of names", at("consumers"))),
    };
    Ok(Policy { labels, consumers })
}

fn address(own: &FleetFile, path: &Path, key: &str) -> Result<Option<SocketAddr>, ConfigError> {
    own.text(key)?
        .map(|text| {
            text.parse()
                .map_err(|_| ConfigError(format!("{key} in {} is {text:?}: write it as IP:PORT", path.display())))
        })
        .transpose()
}

fn loopback(own: &FleetFile, path: &Path, key: &str) -> Result<Option<SocketAddr>, ConfigError> {
    match address(own, path, key)? {
        Some(addr) if !addr.ip().is_loopback() => {
            wrong(format!("{key} in {} is {addr}: it must be a loopback address", path.display()))
        }
        other => Ok(other),
    }
}

fn absolute(env: &Env, name: &str) -> Result<Option<PathBuf>, ConfigError> {
    match env.path(name) {
        Some(path) if !path.is_absolute() => {
            wrong(format!("{name} is {}, which is not an absolute path", path.display()))
        }
        other => Ok(other),
    }
}

/// Keys in order of preference; missing files are skipped by the link.
fn link(env: &Env, home: &Path, stado_home: &Path, user: &str) -> Result<LinkConfig, ConfigError> {
    let resolver_key =
        absolute(env, "STADO_RESOLVER_SSH_KEY_FILE")?.unwrap_or_else(|| stado_home.join("resolver-ssh-key"));
    let mut identity_files = vec![resolver_key];
    identity_files.extend(absolute(env, "STADO_HOST_SSH_KEY_FILE")?);
    identity_files.extend(["id_ed25519", "id_ecdsa", "id_rsa"].map(|name| home.join(".ssh").join(name)));
    Ok(LinkConfig {
        user: user.to_owned(),
        identity_files,
        agent_socket: env.path("SSH_AUTH_SOCK"),
        known_hosts: vec![home.join(".ssh/known_hosts"), stado_home.join("known_hosts")],
        ssh_config: ssh_config(env, home)?,
        timing: Timing::default(),
        threads: None,
    })
}

/// `~/.ssh/config`, or the file that `STADO_SSH_CONFIG` names; `none` reads none.
fn ssh_config(env: &Env, home: &Path) -> Result<Option<SshConfigFile>, ConfigError> {
    if env.text("STADO_SSH_CONFIG")?.as_deref() == Some("none") {
        return Ok(None);
    }
    let file = absolute(env, "STADO_SSH_CONFIG")?.unwrap_or_else(|| home.join(".ssh/config"));
    Ok(Some(SshConfigFile { file, home: home.to_owned() }))
}

/// The account's name: as the login said, else the one whose home this is.
fn user(env: &Env, home: &Path) -> String {
    let said = ["USER", "LOGNAME"].iter().find_map(|name| env.text(name).ok().flatten());
    said.or_else(|| owner_of(home, &std::fs::read_to_string("/etc/passwd").ok()?)).unwrap_or_default()
}

fn owner_of(home: &Path, passwd: &str) -> Option<String> {
    let home = home.to_str()?;
    let line = passwd.lines().find(|line| line.split(':').nth(5) == Some(home))?;
    line.split(':').next().map(str::to_owned)
}

/// The machine's hostname, normalised by whoever compares it.
fn hostname() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let text = from_kernel.or_else(|| {
        let output = std::process::Command::new("hostname").output().ok()?;
        String::from_utf8(output.stdout).ok()
    });
    text.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(own: &str, pairs: &[(&str, &str)], target: Option<&str>) -> Result<HostConfig, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".stado")).unwrap();
        std::fs::write(dir.path().join(".stado/config.json"), own).unwrap();
        let home = dir.path().to_str().unwrap().to_owned();
        let mut all = vec![("HOME", home.as_str()), ("USER", "ann")];
        all.extend_from_slice(pairs);
        let all: [(&str, &str); 4] = std::array::from_fn(|i| all.get(i).copied().unwrap_or(("UNUSED", "")));
        HostConfig::read(&Env::of(all), target)
    }

    #[test]
    fn the_variable_wins_over_the_file_and_a_flag_that_differs_is_refused() {
        let name = |config: Result<HostConfig, ConfigError>| config.unwrap().target.map(|t| t.to_string());
        assert_eq!(name(read(r#"{"target":"c"}"#, &[], None)).as_deref(), Some("c"));
        assert_eq!(name(read(r#"{"target":"c"}"#, &[("STADO_TARGET", "b")], None)).as_deref(), Some("b"));
        assert_eq!(name(read(r#"{"target":"c"}"#, &[("STADO_TARGET", "b")], Some("b"))).as_deref(), Some("b"));
        let flagged = read("{}", &[], Some("a")).unwrap();
        assert_eq!((flagged.target, flagged.asked.map(|t| t.to_string()).as_deref()), (None, Some("a")));
        for variable in [&[("STADO_TARGET", "b")] as &[_], &[]] {
            let refused = read(r#"{"target":"b"}"#, variable, Some("a")).unwrap_err().0;
            assert_eq!(refused, "resolver target \"a\" does not match this host (\"b\")");
        }
        assert_eq!(name(read("{}", &[], None)), None);
    }

    #[test]
    fn bad_values_name_their_source() {
        let error = |own: &str, pairs: &[(&str, &str)]| read(own, pairs, None).unwrap_err().0;
        assert!(error("{}", &[("STADO_TARGET", "Not A Name")]).starts_with("STADO_TARGET is \"Not A Name\""));
        assert!(error(r#"{"api_bind":"0.0.0.0:1"}"#, &[]).contains("must be a loopback address"));
        assert!(error(r#"{"gate":{"bind":"x"}}"#, &[]).starts_with("gate.bind in "));
        assert!(error("{}", &[("STADO_RESOLVER_STATE_FILE", "x.json")]).contains("not an absolute path"));
    }

    #[test]
    fn keys_are_tried_resolver_key_first() {
        let config = read("{}", &[("STADO_RESOLVER_SSH_KEY_FILE", "/k"), ("SSH_AUTH_SOCK", "/agent")], None).unwrap();
        assert_eq!(config.link.identity_files[0], Path::new("/k"));
        assert!(config.link.identity_files[1].ends_with(".ssh/id_ed25519"));
        assert_eq!(config.link.agent_socket.as_deref(), Some(Path::new("/agent")));
        assert_eq!(config.link.user, "ann");
        assert!(config.link.known_hosts[1].ends_with(".stado/known_hosts"));
    }

    #[test]
    fn the_account_is_found_by_its_home() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(owner_of(Path::new("/home/ann"), passwd).as_deref(), Some("ann"));
        assert_eq!(owner_of(Path::new("/home/bo"), passwd), None);
    }
}
