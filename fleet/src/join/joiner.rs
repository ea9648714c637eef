//! The steps of a host that joins. Each may be cut and be done again: a second run finds what the first one did.
use super::{Candidate, Invitation, OwnConfig, Pending, Welcome, keep, pins, public_key, read_or_make, wire};
use crate::authority::{RegistryError, RemoteAuthority, Source, fetch};
use crate::disk;
use crate::fault::Class;
use crate::last_good::LastGood;
use crate::link::{ExecLimits, ExecOutput, Link, LinkConfig, LinkError, Stage, Timing};
use crate::name::{ConnectionPath, TargetName};
use jiff::Timestamp;
use russh::keys::ssh_key::LineEnding;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For the authority to write the registry, other hosts' writes included.
const ADMIT: ExecLimits = ExecLimits { stdout: 1 << 20, deadline: Duration::from_secs(90) };
/// For the authority to take the host's own key.
const TAKEN: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);

/// The moments of a join, in order. After each it may end, and begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The invitation is kept for a second run.
    Kept,
    /// The host has its keys.
    Keys,
    /// The authority's host keys are pinned.
    Pinned,
    /// The authority has taken the host in.
    Admitted,
    /// The host knows its name.
    Named,
    /// It has a copy of the registry, read with its own key.
    Copied,
    /// Nothing of the invitation is left.
    Done,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Kept, Self::Keys, Self::Pinned, Self::Admitted, Self::Named, Self::Copied, Self::Done];
}

/// Told each step as it is done: what is shown to a person, and fault points for tests. Its error ends the join there.
pub type Observer<'a> = &'a mut (dyn FnMut(Step) -> Result<(), RegistryError> + Send);

/// What a host asks for beside the invitation.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Name, address, gate.
    pub pending: Pending,
    /// `linux-amd64` or `darwin-arm64`.
    pub release_platform: String,
    /// Absolute path of this `stado`.
    pub command: String,
}

/// A host that is in the fleet.
#[derive(Debug, Clone)]
pub struct Joined {
    /// What the authority said.
    pub welcome: Welcome,
    /// Hosts of the registry.
    pub hosts: usize,
    /// Generation of its directory.
    pub generation: u64,
}

/// A host that joins.
#[derive(Debug, Clone)]
pub struct Joiner {
    home: PathBuf,
    user: String,
    own_keys: Vec<PathBuf>,
    timing: Timing,
}

impl Joiner {
    /// With `~/.stado` and what the link of this host is made of.
    pub fn new(stado_home: &Path, link: &LinkConfig) -> Self {
        let own_keys = link.identity_files.first().cloned().into_iter().collect();
        Self { home: stado_home.to_owned(), user: link.user.clone(), own_keys, timing: link.timing.clone() }
    }

    /// Joins, telling each step.
    ///
    /// # Errors
    /// What stopped it; the same call goes on from there.
    pub async fn join(&self, asked: &Asked, observe: Observer<'_>) -> Result<Joined, RegistryError> {
        let invitation = Invitation::parse(&asked.pending.invitation).map_err(|e| refused(e.to_string()))?;
        self.not_elsewhere(&invitation, &asked.pending.name)?;
        let pending = &asked.pending;
        pending.write(&self.home).map_err(config)?;
        observe(Step::Kept)?;
        let candidate = self.candidate(asked).await.map_err(config)?;
        observe(Step::Keys)?;
        self.pin(&invitation).map_err(config)?;
        observe(Step::Pinned)?;
        let welcome = self.ask(&invitation, &candidate).await?;
        observe(Step::Admitted)?;
        OwnConfig::new(&self.home).name(&welcome.target, pending.door.as_ref()).map_err(config)?;
        observe(Step::Named)?;
        let (hosts, generation) = self.copy(&invitation).await?;
        observe(Step::Copied)?;
        for file in [self.one_time_key(), Pending::file(&self.home)] {
            remove(&file).map_err(config)?;
        }
        observe(Step::Done)?;
        Ok(Joined { welcome, hosts, generation })
    }

    /// A host is in one fleet.
    fn not_elsewhere(&self, invitation: &Invitation, name: &TargetName) -> Result<(), RegistryError> {
        let Ok(Some(copy)) = LastGood::new(self.home.join("cache")).read() else { return Ok(()) };
        let registry = &copy.snapshot.valid.registry;
        let authority = registry.directory.as_ref().map(|directory| &directory.authority_target);
        match authority {
            Some(authority) if *authority != invitation.authority => Err(refused(format!(
                "this host has a copy of the registry of {authority}, and the invitation is to that of {}: a host is in one \
                 fleet; `stado fleet leave` ends the first",
                invitation.authority
            ))),
            Some(authority) if authority == name => Err(refused(format!("{name} is the authority's own name"))),
            _ => Ok(()),
        }
    }

    async fn candidate(&self, asked: &Asked) -> Result<Candidate, String> {
        let file = self.own_keys.first().cloned().unwrap_or_else(|| self.home.join("resolver-ssh-key"));
        let key = read_or_make(&file).map_err(|why| format!("this host's key {} {why}", file.display()))?;
        let key = public_key(&key);
        let beside = PathBuf::from(format!("{}.pub", file.display()));
        if !beside.exists() {
            disk::replace(&beside, format!("{key}\n").as_bytes()).map_err(|e| e.to_string())?;
        }
        let host_keys = match (&asked.pending.door, asked.pending.destination()) {
            (Some(door), Some(address)) => door.host_keys(&self.home, &address, &self.timing).await?,
            _ => Vec::new(),
        };
        Ok(Candidate {
            version: wire::VERSION,
            name: asked.pending.name.clone(),
            key,
            release_platform: asked.release_platform.clone(),
            command: asked.command.clone(),
            ssh: asked.pending.destination().map(|to| to.to_string()),
            host_keys,
        })
    }

    fn pin(&self, invitation: &Invitation) -> Result<(), String> {
        let lines = |way| pins::lines(&invitation.authority, way, &invitation.host_keys);
        let lines: Vec<String> = invitation.ways.iter().flat_map(lines).collect();
        keep(&self.home.join("known_hosts"), &lines, false).map_err(|e| e.to_string())?;
        Ok(())
    }

    /// Shows the invitation to the authority: its secret signs, and never leaves this host.
    async fn ask(&self, invitation: &Invitation, candidate: &Candidate) -> Result<Welcome, RegistryError> {
        let text = invitation.key().to_openssh(LineEnding::LF).map_err(|e| config(e.to_string()))?;
        disk::replace(&self.one_time_key(), text.as_bytes()).map_err(|e| config(e.to_string()))?;
        let link = self.link(vec![self.one_time_key()]);
        let authority = remote(invitation);
        let stdin = serde_json::to_vec(candidate).map_err(|e| config(e.to_string()))?;
        let verb = authority.verb("fleet admit");
        let asking = link.exec(&authority.target, &authority.paths, &verb, &stdin, ADMIT);
        let place = format!("registry authority {}", authority.target);
        let answer = crate::czekam::when_long(Duration::from_secs(2), "joining", &place, "ssh", asking).await;
        link.close().await;
        answered(invitation, answer)
    }

    /// Reads the registry with this host's own key, which proves that it is taken.
    async fn copy(&self, invitation: &Invitation) -> Result<(usize, u64), RegistryError> {
        let own = self.own_keys.first().cloned().unwrap_or_else(|| self.home.join("resolver-ssh-key"));
        let source = Source::Remote(remote(invitation));
        let until = Instant::now() + TAKEN;
        let snapshot = loop {
            // Refused a moment ago is remembered by a link: each attempt has a new one.
            let link = self.link(vec![own.clone()]);
            let read = fetch(&source, &link).await;
            link.close().await;
            match read {
                Err(error) if error.class == Class::Auth && Instant::now() < until => tokio::time::sleep(AGAIN).await,
                read => break read?.ok_or_else(|| RegistryError::absent(&source.location()))?,
            }
        };
        let last_good = LastGood::new(self.home.join("cache"));
        last_good.seed(&snapshot, Timestamp::now()).map_err(|e| config(e.sentence))?;
        let registry = &snapshot.valid.registry;
        Ok((registry.targets.len(), registry.directory.as_ref().map_or(0, |d| d.generation.0)))
    }

    fn one_time_key(&self) -> PathBuf {
        self.home.join("joining-key")
    }

    /// Only what the invitation says counts: no agent, no account's ssh_config, no other known hosts.
    fn link(&self, identity_files: Vec<PathBuf>) -> Link {
        Link::new(LinkConfig {
            user: self.user.clone(),
            identity_files,
            agent_socket: None,
            known_hosts: vec![self.home.join("known_hosts")],
            ssh_config: None,
            timing: self.timing.clone(),
            threads: None,
        })
    }
}

fn refused(sentence: String) -> RegistryError {
    RegistryError::new(Class::Refused, sentence)
}

fn config(sentence: String) -> RegistryError {
    RegistryError::new(Class::Config, sentence)
}

fn remove(file: &Path) -> Result<(), String> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("cannot remove {}: {e}", file.display())),
        _ => Ok(()),
    }
}

fn remote(invitation: &Invitation) -> RemoteAuthority {
    let named = |(n, way): (usize, &crate::name::SshDestination)| ConnectionPath {
        name: if n == 0 { "primary".into() } else { format!("way-{n}") },
        destination: way.clone(),
    };
    RemoteAuthority {
        target: invitation.authority.clone(),
        command: invitation.command.clone(),
        paths: invitation.ways.iter().enumerate().map(named).collect(),
        shared: None,
        epoch: 0,
        standbys: Vec::new(),
    }
}

fn answered(invitation: &Invitation, answer: Result<ExecOutput, LinkError>) -> Result<Welcome, RegistryError> {
    let authority = &invitation.authority;
    let output = match answer {
        Ok(output) => output,
        Err(e) => return Err(unanswered(invitation, &e)),
    };
    if output.status == Some(0) {
        let text = String::from_utf8_lossy(&output.stdout);
        // A login script may chatter before it.
        let welcome = text.lines().rev().find_map(|line| serde_json::from_str::<Welcome>(line).ok());
        return welcome.ok_or_else(|| {
            refused(format!("{authority} gave no answer that this stado can read: install the same version on both"))
        });
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let said = said.strip_prefix("Error: ").unwrap_or(said).lines().next().unwrap_or_default();
    let class = if output.status == Some(69) { Class::InfraDown } else { Class::Refused };
    Err(RegistryError::new(class, format!("{authority} did not let this host in: {said}")))
}

fn unanswered(invitation: &Invitation, error: &LinkError) -> RegistryError {
    let (id, authority) = (&invitation.id, &invitation.authority);
    match (error.stage, error.class) {
        (Stage::HostKey, _) => RegistryError::new(
            Class::Auth,
            format!(
                "what answers in the place of {authority} is not the host that the invitation names, so nothing was said to it: \
                 {}; somebody is in between, or {authority} was installed anew: ask for a new invitation",
                error.causes()
            ),
        ),
        (_, Class::Auth) => RegistryError::new(
            Class::Auth,
            format!(
                "{authority} does not know the secret of invitation {id}: the line was changed on its way here, or {authority} \
                 has forgotten the invitation; ask for a new one ({})",
                error.causes()
            ),
        ),
        (_, class) => RegistryError::new(class, format!("{authority} was not reached: {}", error.causes())),
    }
}
