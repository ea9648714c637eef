//! What the gate's closed table of verbs does on this host (fleet contract §3.2, §3.5), and which endpoints it may reach.
use super::mesh_side::MeshSide;
use super::part::Slot;
use crate::apply::held::{Held, HeldReader};
use crate::conn::ledger::Ledger;
use crate::conn::{self, OwnListeners};
use crate::gate::{self, Caller, Running, VerbOutput, Verbs};
use crate::mesh::Mesh;
use russh::keys::PublicKey;
use russh::keys::ssh_key::public::KeyData;
use stado_fleet::authority::{
    Bulletin, Holders, PushRequest, RegistryError, Source, content_line, history, push, settled, snapshot_line, tell,
};
use stado_fleet::directory::Lent;
use stado_fleet::edit::Overrides;
use stado_fleet::fault::{Class, Faulty};
use stado_fleet::join::{self, Presented, Shelf};
use stado_fleet::link::relay::{Explaining, Grant, withdrawn};
use stado_fleet::link::{ChannelStream, Link};
use stado_fleet::name::TargetName;
use stado_fleet::store::RegistryStore;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// For this host to take a registry into force that names a new host.
const TAKEN: Duration = Duration::from_secs(10);
/// How long a client waits for news that may allow what it asks for.
const RENEWAL: Duration = Duration::from_secs(1);

/// This host's authority and directory, behind the gate.
#[derive(Debug)]
pub(super) struct GateVerbs {
    pub(super) store: Arc<dyn RegistryStore>,
    pub(super) link: Link,
    pub(super) held: HeldReader,
    /// Tells of the store's versions.
    pub(super) bulletin: Bulletin,
    /// Keeps what its readers say that they hold.
    pub(super) holders: Holders,
    /// Where this daemon listens, and what became of the connections there.
    pub(super) own: OwnListeners,
    pub(super) ledger: Ledger,
    /// Wakes the refresh loop after a push.
    pub(super) wake: Arc<Notify>,
    /// This host's invitations.
    pub(super) shelf: Shelf,
    /// Hosts that join at once are written one after the other.
    pub(super) joining: tokio::sync::Mutex<()>,
    /// This host's mesh.
    pub(super) mesh: MeshOf,
}

/// The mesh of this daemon, which may be served later than the fleet.
#[derive(Clone, Default)]
pub(super) struct MeshOf(pub(super) Option<Slot<MeshSide>>);

impl MeshOf {
    fn now(&self) -> Option<Arc<Mesh>> {
        self.0.as_ref()?.with(|side| side.mesh.clone())
    }
}

impl std::fmt::Debug for MeshOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeshOf")
    }
}

impl Verbs for GateVerbs {
    fn run<'a>(&'a self, argv: &'a [String], stdin: Vec<u8>) -> Running<'a> {
        Box::pin(async move {
            let words: Vec<&str> = argv.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["resolver", "snapshot"] => self.snapshot(None).await,
                ["resolver", "snapshot", "--if-newer-than", version] => self.snapshot(Some(version)).await,
                ["registry", "history", "--here", "--json"] => self.history().await,
                ["registry", "history", "--here", "--content", version] => self.content(version).await,
                ["registry", "holders", "--here", "--json"] => self.holders().await,
                ["service", "resolve", name, "--raw"] => self.resolve(name),
                ["registry", "push", "-", flags @ ..] => match PushFlags::read(flags) {
                    Ok(flags) => self.push(flags, stdin).await,
                    Err(usage) => failed(2, &usage),
                },
                _ => failed(gate::REFUSED, &format!("this gate runs {} only", gate::TABLE)),
            }
        })
    }

    fn watch(&self, stream: ChannelStream) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // It ends with an error when its reader is gone, which is how it ends.
            let _ = tell(&self.bulletin, &self.holders, stream).await;
        })
    }

    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let mut held = self.held.clone();
            let now = held.borrow_and_update().as_ref().map(|held| held.snapshot.store_version.clone());
            self.wake.notify_one();
            let newer = held.wait_for(|held| held.as_ref().map(|held| &held.snapshot.store_version) != now.as_ref());
            let _ = tokio::time::timeout(RENEWAL, newer).await;
        })
    }

    fn admit<'a>(&'a self, caller: &'a Caller, stdin: Vec<u8>) -> Running<'a> {
        Box::pin(self.take_in(caller, stdin))
    }

    fn leave<'a>(&'a self, caller: &'a Caller) -> Running<'a> {
        Box::pin(self.let_go(caller))
    }

    fn is_member(&self, key: &KeyData) -> bool {
        text(key).is_some_and(|key| self.member(&key).is_some())
    }

    fn is_invited<'a>(&'a self, key: &'a KeyData) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let (Some(key), shelf) = (text(key), self.shelf.clone()) else { return false };
            let read = tokio::task::spawn_blocking(move || shelf.read().map(|book| book.of_key(&key).is_some()));
            match read.await {
                Ok(Ok(known)) => known,
                Ok(Err(error)) => {
                    tracing::warn!(target: "stado::fleet", "stado gate: {error}");
                    false
                }
                Err(_) => false,
            }
        })
    }

    fn membership(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut held = self.held.clone();
        held.mark_unchanged();
        Box::pin(async move {
            if held.changed().await.is_err() {
                std::future::pending().await
            }
        })
    }

    fn why_ended(&self, endpoint: SocketAddr, client: SocketAddr) -> Explaining<'_> {
        Box::pin(conn::why_ended(&self.own, &self.ledger, endpoint, client))
    }

    fn lend(&self, key: &KeyData, endpoint: SocketAddr) -> Result<Grant, String> {
        let held = self.held.borrow().clone();
        let held = held.ok_or("this host holds no service directory yet, so it places no endpoint here")?;
        let host = text(key).and_then(|key| held.directory.registry().host_of_key(&key).cloned());
        let lent = held.directory.lend(endpoint, host.as_ref())?;
        Ok(Box::pin(until_withdrawn(self.held.clone(), lent, self.mesh.clone())))
    }
}

/// Returns once the directory no longer lends what was lent; it is counted and said by then.
async fn until_withdrawn(held: HeldReader, lent: Lent, mesh: MeshOf) {
    let allows = |held: &Option<Arc<Held>>| held.as_ref().map_or(Ok(()), |held| held.directory.still_lends(&lent));
    let why = withdrawn(held, allows).await;
    let (service, host) = (lent.service(), lent.host());
    tracing::info!(target: "stado::fleet", "stado gate: a stream of {host} to {service} was ended: {why}");
    if let Some(mesh) = mesh.now() {
        mesh.metrics().relay_withdrawn(service, host);
    }
}

impl GateVerbs {
    async fn snapshot(&self, newer_than: Option<&str>) -> VerbOutput {
        let Ok(newer_than) = newer_than.map(str::parse).transpose() else {
            return failed(2, "--if-newer-than takes a store version");
        };
        said(snapshot_line(self.store.as_ref(), newer_than.as_ref()).await)
    }

    async fn history(&self) -> VerbOutput {
        let source = Source::Store(self.store.clone());
        said(history(&source, &self.link).await.map(|report| json(&report)))
    }

    async fn holders(&self) -> VerbOutput {
        let holders = self.holders.clone();
        let report = tokio::task::spawn_blocking(move || holders.report(jiff::Timestamp::now())).await;
        VerbOutput { stdout: (json(&report.unwrap_or_default()) + "\n").into_bytes(), stderr: Vec::new(), status: 0 }
    }

    /// Whether a service of this host's mesh has a backend, and its address: what a host asks before it moves one here.
    fn resolve(&self, name: &str) -> VerbOutput {
        let Some(mesh) = self.mesh.now() else {
            return failed(69, "Error: this daemon serves no mesh now; see `stado resolver status`");
        };
        let given = match mesh.resolve(name) {
            Ok(service) if service.status == "ready" => service.address(),
            Ok(service) => Err(service.unavailable()),
            Err(refusal) => Err(refusal.to_string()),
        };
        match given {
            Ok(address) => VerbOutput { stdout: (address + "\n").into_bytes(), stderr: Vec::new(), status: 0 },
            Err(why) => failed(1, &format!("Error: {why}")),
        }
    }

    async fn content(&self, version: &str) -> VerbOutput {
        match version.parse() {
            Ok(version) => said(content_line(self.store.as_ref(), &version).await),
            Err(_) => failed(2, "--content takes a store version"),
        }
    }

    /// The host of the fleet that has this key.
    fn member(&self, key: &str) -> Option<TargetName> {
        let held = self.held.borrow().clone()?;
        held.directory.registry().host_of_key(key).cloned()
    }

    /// Where this host writes: one that was replaced as the authority hands on what still comes to it.
    async fn source(&self) -> Source {
        let me = self.held.borrow().as_ref().map(|held| held.target.clone());
        settled(Source::Store(self.store.clone()), &|_| me.clone(), &self.store).await
    }

    /// Answers once this host's own gate takes the new key.
    async fn take_in(&self, caller: &Caller, stdin: Vec<u8>) -> VerbOutput {
        let candidate = match serde_json::from_slice(&stdin) {
            Ok(candidate) => candidate,
            Err(error) => return failed(2, &format!("Error: what the host says of itself cannot be read: {error}")),
        };
        let from = caller.peer.ip().to_canonical().to_string();
        let presented = Presented { invitation: caller.key.clone(), from, candidate };
        let source = self.source().await;
        let _one = self.joining.lock().await;
        let now = jiff::Timestamp::now();
        match join::admit(&self.shelf, &source, &self.link, &presented, now).await {
            Err(error) => refused(&error),
            Ok(welcome) => {
                let mut held = self.held.clone();
                self.wake.notify_one();
                let key = &presented.candidate.key;
                let known = held.wait_for(|held| {
                    held.as_ref().is_some_and(|held| held.directory.registry().host_of_key(key).is_some())
                });
                let _ = tokio::time::timeout(TAKEN, known).await;
                said(Ok(json(&welcome)))
            }
        }
    }

    async fn let_go(&self, caller: &Caller) -> VerbOutput {
        let Some(target) = self.member(&caller.key) else {
            return VerbOutput::refused(
                "this key is no host's of the fleet: it came in by authorized_keys, which a person keeps",
            );
        };
        let left = join::strike(&self.source().await, &self.link, &target).await;
        self.wake.notify_one();
        said(left.map(|struck| serde_json::json!({"left": target, "changed": struck}).to_string()))
    }

    /// The document comes from standard input; the swap is on this host's own store.
    async fn push(&self, flags: PushFlags, stdin: Vec<u8>) -> VerbOutput {
        let (bytes, if_generation) = (stdin.into(), flags.if_generation);
        let request = PushRequest { bytes, if_generation, overrides: flags.overrides };
        let source = self.source().await;
        match push(&source, &self.link, request).await {
            Ok(receipt) => {
                self.wake.notify_one();
                let text = if flags.json { json(&receipt) } else { receipt.text("-") };
                VerbOutput { stdout: (text + "\n").into_bytes(), stderr: Vec::new(), status: 0 }
            }
            Err(refusal) => {
                let mut output = refused(&refusal.error);
                if let Some(receipt) = refusal.receipt.filter(|_| flags.json) {
                    output.stdout = (json(&receipt) + "\n").into_bytes();
                }
                output
            }
        }
    }
}

/// `type base64`
fn text(key: &KeyData) -> Option<String> {
    PublicKey::from(key.clone()).to_openssh().ok()
}

/// Flags of `registry push -`.
#[derive(Debug, Default)]
struct PushFlags {
    if_generation: Option<stado_fleet::name::StoreVersion>,
    overrides: Overrides,
    json: bool,
}

impl PushFlags {
    fn read(flags: &[&str]) -> Result<Self, String> {
        let mut read = Self::default();
        let mut rest = flags.iter();
        while let Some(flag) = rest.next() {
            match flag.split_once('=').map_or((*flag, None), |(name, value)| (name, Some(value))) {
                ("--force", None) => read.overrides.force = true,
                ("--allow-empty-fleet", None) => read.overrides.allow_empty_fleet = true,
                ("--json", None) => read.json = true,
                ("--if-generation", value) => {
                    let value = value.or_else(|| rest.next().copied()).unwrap_or_default();
                    let version = value.parse().map_err(|error| format!("--if-generation: {error}"))?;
                    read.if_generation = Some(version);
                }
                _ => return Err(format!("registry push: unexpected argument {flag:?}")),
            }
        }
        Ok(read)
    }
}

fn json(receipt: &impl serde::Serialize) -> String {
    // A receipt is a flat record of texts: it always serialises.
    serde_json::to_string(receipt).unwrap_or_default()
}

fn said(line: Result<String, RegistryError>) -> VerbOutput {
    match line {
        Ok(line) => VerbOutput { stdout: (line + "\n").into_bytes(), stderr: Vec::new(), status: 0 },
        Err(error) => refused(&error),
    }
}

/// The exit code of the one table (design, rule 8).
fn refused(error: &RegistryError) -> VerbOutput {
    let status = match error.class() {
        Class::Moved => 75,
        Class::Usage => 2,
        Class::InfraDown | Class::Timeout | Class::RateLimit => 69,
        _ => 1,
    };
    failed(status, &format!("Error: {error}"))
}

fn failed(status: u32, sentence: &str) -> VerbOutput {
    VerbOutput { stdout: Vec::new(), stderr: format!("{sentence}\n").into_bytes(), status }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_flags_are_read_in_both_spellings_and_strangers_are_refused() {
        let all = PushFlags::read(&["--if-generation", "abc", "--force", "--allow-empty-fleet", "--json"]).unwrap();
        assert_eq!(all.if_generation.as_ref().unwrap().as_str(), "abc");
        assert!(all.overrides.force && all.overrides.allow_empty_fleet && all.json);
        assert_eq!(PushFlags::read(&["--if-generation=abc"]).unwrap().if_generation, all.if_generation);
        assert!(PushFlags::read(&["--if-generation"]).unwrap_err().starts_with("--if-generation: "));
        assert!(PushFlags::read(&["--quiet"]).unwrap_err().contains("--quiet"));
        let none = PushFlags::read(&[]).unwrap();
        assert!(none.if_generation.is_none() && !none.overrides.force && !none.json);
    }
}
