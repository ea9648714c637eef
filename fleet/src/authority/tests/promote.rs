//! A standby that is promoted: with the authority, without it, interrupted anywhere; and what the one before hears of it.
use super::*;
use crate::edit::Overrides;
use crate::fault::Class;
use crate::last_good::Copy;
use crate::link::{ExecLimits, ExecOutput, LinkError, Stage};
use crate::name::{ConnectionPath, TargetName};
use crate::testing::promoted;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

/// What a host does with the next command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    /// It runs the next push, and its answer is lost with everything after.
    DownAfterPush,
}

/// Hosts with stores of their own, each of which can be away.
#[derive(Default)]
struct Hosts {
    hosts: BTreeMap<&'static str, (Arc<LocalStore>, Mutex<Way>)>,
}

impl Hosts {
    fn store(&self, name: &str) -> &Arc<LocalStore> {
        &self.hosts[name].0
    }

    fn way(&self, name: &str, way: Way) {
        *self.hosts[name].1.lock().unwrap() = way;
    }

    async fn held(&self, name: &str) -> Option<Document> {
        let stored = self.store(name).read().await.unwrap()?;
        Some(Document::parse(stored.bytes).unwrap())
    }

    async fn run(&self, name: &str, command: &str, stdin: &[u8]) -> ExecOutput {
        let verb = command.strip_prefix("'/opt/stado/bin/stado' ").unwrap();
        let store = self.store(name).clone();
        let source = Source::Store(store.clone());
        let said = |status, stdout: String, stderr: String| ExecOutput {
            stdout: stdout.into_bytes(),
            stderr: stderr.into_bytes(),
            status: Some(status),
            path: "primary".into(),
            cut: false,
        };
        let line = |line: Result<String, RegistryError>| match line {
            Ok(line) => said(0, line + "\n", String::new()),
            Err(e) => said(1, String::new(), format!("Error: {e}")),
        };
        let words: Vec<&str> = verb.split(' ').collect();
        match words.as_slice() {
            ["resolver", "snapshot", ..] => line(snapshot_line(store.as_ref(), None).await),
            ["registry", "history", "--here", "--json"] => {
                line(history(&source, self).await.map(|report| serde_json::to_string(&report).unwrap()))
            }
            ["registry", "history", "--here", "--content", version] => {
                line(content_line(store.as_ref(), &version.parse().unwrap()).await)
            }
            ["registry", "push", "-", "--if-generation", generation, ..] => {
                let overrides = Overrides { force: true, allow_empty_fleet: true };
                let if_generation = Some(generation.parse().unwrap());
                let pushed = push(&source, self, PushRequest { bytes: stdin.into(), if_generation, overrides }).await;
                match pushed {
                    Ok(receipt) => said(0, serde_json::to_string(&receipt).unwrap(), String::new()),
                    Err(PushRefused { error, receipt: Some(receipt) }) => {
                        said(75, serde_json::to_string(&receipt).unwrap(), format!("Error: {error}"))
                    }
                    Err(PushRefused { error, receipt: None }) => said(1, String::new(), format!("Error: {error}")),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Exec for Hosts {
    fn exec<'a>(
        &'a self,
        host: &'a TargetName,
        _: &'a [ConnectionPath],
        command: &'a str,
        stdin: &'a [u8],
        _: ExecLimits,
    ) -> Pin<Box<dyn Future<Output = Result<ExecOutput, LinkError>> + Send + 'a>> {
        Box::pin(async move {
            let way = *self.hosts[host.as_str()].1.lock().unwrap();
            let down = || LinkError::new(Stage::Connect, Class::InfraDown, "no path answered (primary: down)");
            match way {
                Way::Up => Ok(self.run(host.as_str(), command, stdin).await),
                Way::Down => Err(down()),
                Way::DownAfterPush => {
                    let output = self.run(host.as_str(), command, stdin).await;
                    if !command.contains("registry push") {
                        return Ok(output);
                    }
                    self.way(host.as_str(), Way::Down);
                    Err(LinkError::new(Stage::Exec, Class::InfraDown, "the session was lost"))
                }
            }
        })
    }
}

/// `control` is the authority, `desk` stands by and is where everything is done.
struct Scene {
    home: tempfile::TempDir,
    hosts: Hosts,
    desk: Arc<dyn RegistryStore>,
    last_good: LastGood,
}

fn with_standby(document: &Document) -> Document {
    let mut value = document.value().clone();
    value["succession"] = serde_json::json!({"standbys": ["desk"]});
    Document::from_value(value)
}

impl Scene {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut hosts = Hosts::default();
        for name in ["control", "desk"] {
            let store = Arc::new(LocalStore::open(home.path().join(name)).unwrap());
            hosts.hosts.insert(name, (store, Mutex::new(Way::Up)));
        }
        let first = with_standby(&document(7, 5432));
        hosts.store("control").swap(Expected::Absent, first.bytes().to_vec()).await.unwrap();
        let last_good = LastGood::new(home.path().join("cache"));
        last_good.record(&snapshot_of(first, "first"), jiff::Timestamp::now()).unwrap();
        let desk: Arc<dyn RegistryStore> = hosts.store("desk").clone();
        Self { home, hosts, desk, last_good }
    }

    fn copy(&self) -> Option<Copy> {
        self.last_good.read().unwrap()
    }

    async fn here(&self, me: &str, store: &Arc<dyn RegistryStore>, last_good: &LastGood) -> Source {
        here(&|_| Some(me.parse().unwrap()), store, last_good).await.unwrap().source
    }

    async fn promote(&self, from_copy: bool) -> Result<Promoted, RegistryError> {
        let source = self.here("desk", &self.desk, &self.last_good).await;
        let me = "desk".parse().unwrap();
        let request = PromoteRequest { me, command: "/opt/stado/bin/stado".into(), from_copy };
        let now = jiff::Timestamp::now();
        promote(&source, &self.desk, self.copy().as_ref(), &self.hosts, &request, now).await
    }

    /// Where `control` reads and writes; it keeps no copy.
    async fn control(&self) -> Source {
        let store: Arc<dyn RegistryStore> = self.hosts.store("control").clone();
        self.here("control", &store, &LastGood::new(self.home.path().join("none"))).await
    }

    /// `control` writes its own registry, as its people would.
    async fn write_on_control(&self, port: u16) -> Result<PushReceipt, PushRefused> {
        let bytes = with_standby(&document(8, port)).shared_bytes();
        let request = PushRequest { bytes, if_generation: None, overrides: Overrides::default() };
        push(&self.control().await, &self.hosts, request).await
    }

    async fn is_promoted(&self) {
        let held = self.hosts.held("desk").await.unwrap();
        assert_eq!((held.authority(), held.epoch()), (Some("desk"), 1));
        assert!(matches!(self.here("desk", &self.desk, &self.last_good).await, Source::Store(_)));
    }
}

#[tokio::test]
async fn a_promotion_takes_over_with_the_authority_and_loses_no_write() {
    let scene = Scene::new().await;
    // Written after desk's copy was read.
    scene.write_on_control(1111).await.unwrap();
    let promoted = scene.promote(false).await.unwrap();
    assert_eq!(promoted.document.generation().unwrap().0, 9, "on what was written last");
    assert_eq!(promoted.before, Some(("control".parse().unwrap(), Ok(()))));
    scene.is_promoted().await;
    let port = |document: &Document| document.value()["service_directory"]["services"]["db"]["endpoints"].to_string();
    assert!(port(&promoted.document).contains("1111"));
    // The one before serves the same registry, and so follows; a write that comes to it is made on desk.
    assert!(scene.hosts.held("control").await.unwrap().same_as(&promoted.document));
    let Source::Remote(now) = scene.control().await else { panic!() };
    assert_eq!(now.target.as_str(), "desk");
    let late = scene.write_on_control(2222).await.unwrap_err();
    assert!(late.error.sentence.contains("authority epoch 0, and the registry already is of epoch 1 (desk)"), "{late}");
    assert!(scene.promote(false).await.unwrap().already, "it is done once");
}

#[tokio::test]
async fn without_the_authority_a_promotion_has_to_be_said_and_comes_from_the_copy() {
    let scene = Scene::new().await;
    scene.hosts.way("control", Way::Down);
    let unsaid = scene.promote(false).await.unwrap_err();
    assert_eq!(unsaid.class, Class::InfraDown);
    assert!(unsaid.sentence.contains("primary: down") && unsaid.sentence.contains("--from-copy"), "{unsaid}");
    assert!(scene.hosts.held("desk").await.is_none());

    let promoted = scene.promote(true).await.unwrap();
    assert!(promoted.document.generation().unwrap().0 > 100, "far above what the other may have reached");
    assert!(matches!(&promoted.before, Some((name, Err(_))) if name.as_str() == "control"));
    scene.is_promoted().await;

    // Another host, whose copy knows nothing of it, finds desk when control does not answer.
    let reader = locate(scene.copy().as_ref(), Some(&"laptop".parse().unwrap()), scene.desk.clone());
    let found = fetch(&reader, &scene.hosts).await.unwrap().unwrap();
    assert!(found.valid.document.same_as(&promoted.document));
    scene.last_good.record(&found, jiff::Timestamp::now()).unwrap();

    // Control comes back with what it had. Who follows desk takes none of it.
    scene.hosts.way("control", Way::Up);
    let old = snapshot_of(scene.hosts.held("control").await.unwrap(), "old");
    let refused = crate::admit::admit(Some(&found), &old).unwrap_err().0;
    for word in
        ["authority epoch 0 rejected", "authority epoch 1 (desk since ", "start its resolver", "it follows desk"]
    {
        assert!(refused.contains(word), "{refused}");
    }
    let not = scene.last_good.record(&old, jiff::Timestamp::now()).unwrap_err();
    assert!(not.sentence.contains("authority epoch 0 rejected"), "{not}");

    // Its first write finds out, is refused, and makes it follow; what it held is in its history.
    let before = scene.hosts.held("control").await.unwrap();
    let late = scene.write_on_control(2222).await.unwrap_err();
    assert!(late.error.class == Class::Refused && late.receipt.is_none());
    for word in [
        "authority epoch 0, and desk was promoted in its place (authority epoch 1)",
        "Nothing was written",
        "follows desk from now on",
    ] {
        assert!(late.error.sentence.contains(word), "{late}");
    }
    assert!(scene.hosts.held("control").await.unwrap().same_as(&promoted.document));
    let versions = crate::store::history::History::versions(scene.hosts.store("control").as_ref()).await.unwrap();
    let remembered = versions.iter().any(|v| v.version == crate::store::local::version_of(before.bytes()).unwrap());
    assert!(remembered, "{versions:?}");
}

#[tokio::test]
async fn a_write_that_was_made_on_the_old_authority_conflicts_with_the_new_one() {
    let scene = Scene::new().await;
    let (read, version) =
        fetch_for_write(&scene.here("desk", &scene.desk, &scene.last_good).await, &scene.hosts).await.unwrap().unwrap();
    let laptop: Arc<dyn RegistryStore> = Arc::new(LocalStore::open(scene.home.path().join("laptop")).unwrap());
    let source = scene.here("laptop", &laptop, &scene.last_good).await;
    scene.promote(false).await.unwrap();
    let late = commit(&source, &scene.hosts, Some(&version), &with_standby(&read)).await.unwrap_err();
    assert_eq!(late.class, Class::Moved, "{late}");
}

#[tokio::test]
async fn a_promotion_that_is_interrupted_is_made_again_and_goes_on_from_there() {
    // The answer of the one before is lost, and with it everything after: it is told, and this host has not kept it.
    let scene = Scene::new().await;
    scene.hosts.way("control", Way::DownAfterPush);
    let lost = scene.promote(false).await.unwrap_err();
    assert!(lost.sentence.contains("unconfirmed"), "{lost}");
    assert!(scene.hosts.held("desk").await.is_none());
    scene.hosts.way("control", Way::Up);
    let done = scene.promote(false).await.unwrap();
    assert_eq!(done.document.epoch(), 1, "raised once");
    scene.is_promoted().await;

    // The same, and a reader of this host has recorded meanwhile that it is the authority.
    let scene = Scene::new().await;
    scene.hosts.way("control", Way::DownAfterPush);
    scene.promote(false).await.unwrap_err();
    let told = scene.hosts.held("control").await.unwrap();
    scene.last_good.record(&snapshot_of(told, "told"), jiff::Timestamp::now()).unwrap();
    scene.hosts.way("control", Way::Down);
    let done = scene.promote(false).await.unwrap();
    assert_eq!(done.document.epoch(), 1);
    scene.is_promoted().await;

    // Its own store is written, and nothing after: this host is the authority, whatever its copy says.
    let scene = Scene::new().await;
    let next = promoted(&with_standby(&document(7, 5432)));
    scene.desk.swap(Expected::Absent, next.bytes().to_vec()).await.unwrap();
    scene.is_promoted().await;
    assert!(scene.promote(false).await.unwrap().already);
    // And the one before is told by the next look of either.
    let before = locate(scene.copy().as_ref(), None, scene.desk.clone());
    tell_before(&before, &scene.hosts, &next).await.unwrap();
    assert_eq!(scene.hosts.held("control").await.unwrap().authority(), Some("desk"));
}

#[tokio::test]
async fn of_two_standbys_only_one_is_promoted() {
    let scene = Scene::new().await;
    scene.hosts.way("control", Way::Down);
    scene.promote(true).await.unwrap();
    // Another one, with the copy from before.
    let other: Arc<dyn RegistryStore> = Arc::new(LocalStore::open(scene.home.path().join("other")).unwrap());
    let source = locate(scene.copy().as_ref(), Some(&"other".parse().unwrap()), other.clone());
    let request = PromoteRequest { me: "other".parse().unwrap(), command: "/x".into(), from_copy: true };
    let now = jiff::Timestamp::now();
    let refused = promote(&source, &other, scene.copy().as_ref(), &scene.hosts, &request, now).await.unwrap_err();
    assert!(
        refused.sentence.contains("desk was promoted in the place of control already (authority epoch 1)"),
        "{refused}"
    );
    assert!(other.read().await.unwrap().is_none());
}

#[tokio::test]
async fn a_standby_holds_every_version_that_its_authority_remembers() {
    let scene = Scene::new().await;
    scene.write_on_control(1111).await.unwrap();
    let source = scene.here("desk", &scene.desk, &scene.last_good).await;
    let own = scene.desk.history().unwrap();
    assert_eq!(mirror(&source, &scene.hosts, own).await.unwrap(), 2);
    assert_eq!(mirror(&source, &scene.hosts, own).await.unwrap(), 0, "each once");
    let theirs = history(&source, &scene.hosts).await.unwrap().versions;
    assert_eq!(own.versions().await.unwrap(), theirs, "with their times and writers");
    assert!(scene.desk.read().await.unwrap().is_none(), "it serves none of it");
    let kept = own.content(&theirs[1].version).await.unwrap().unwrap();
    assert!(Document::parse(kept).unwrap().same_as(&with_standby(&document(7, 5432))));
}
