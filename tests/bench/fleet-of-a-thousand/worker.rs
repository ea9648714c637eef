//! Many watchers in one process. Each has a link and a watch of its own; what they hold is shared among them, as no process
//! could hold it hundreds of times.
use crate::events::Event;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{Changes, Holding, Source, fetch, fetch_since, next_source};
use stado_fleet::directory::Directory;
use stado_fleet::document::ResolverPolicy;
use stado_fleet::link::{Link, LinkConfig};
use stado_fleet::name::{StoreVersion, TargetName};
use stado_fleet::store::RegistryStore;
use stado_fleet::store::local::LocalStore;
use stado_resolver::apply::follow::{Follow, HeardBy};
use stado_resolver::apply::held::Held;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;

/// `--worker FIRST COUNT STORE KEY KNOWN_HOSTS`
pub fn run(arguments: &[String]) {
    let number = |at: usize| arguments[at].parse::<usize>().unwrap();
    let (first, count, store) = (number(0), number(1), PathBuf::from(&arguments[2]));
    let config = LinkConfig {
        user: crate::support::sshd::login(),
        identity_files: vec![PathBuf::from(&arguments[3])],
        known_hosts: vec![PathBuf::from(&arguments[4])],
        ..LinkConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let empty = tempfile::tempdir().unwrap();
        let own: Arc<dyn RegistryStore> = Arc::new(LocalStore::open(empty.path()).unwrap());
        let link = Link::new(LinkConfig::default());
        let from = Source::Store(Arc::new(LocalStore::open(store).unwrap()));
        let begin = fetch(&from, &link).await.unwrap().unwrap();
        let shared = Arc::new(Shared::default());
        let mut hosts = JoinSet::new();
        for n in first..first + count {
            hosts.spawn(host(n, Link::new(config.clone()), own.clone(), begin.clone(), shared.clone()));
        }
        hosts.join_all().await;
    });
}

/// What some host of this process holds already.
#[derive(Default)]
struct Shared(Mutex<HashMap<StoreVersion, Arc<Held>>>);

impl Shared {
    /// Made once for all hosts of this process, as each of a real fleet would make it on its own machine.
    async fn of(&self, told: Vec<stado_fleet::authority::Change>, held: &Snapshot) -> Option<Arc<Held>> {
        let to = told.last()?.to.clone();
        let mut all = self.0.lock().await;
        if let Some(known) = all.get(&to) {
            return Some(known.clone());
        }
        let snapshot = Changes::apply(told, held.clone(), "the authority").await.ok()?;
        let made = seen(snapshot);
        all.retain(|_, held| Arc::strong_count(held) > 1);
        all.insert(to, made.clone());
        Some(made)
    }
}

fn seen(snapshot: Snapshot) -> Arc<Held> {
    let target: TargetName = "host-0000".parse().unwrap();
    let directory = Arc::new(Directory::build(snapshot.valid.registry.clone(), target.clone()));
    let policy = ResolverPolicy {
        api_bind: ([127, 0, 0, 1], 17600).into(),
        refresh_seconds: 5,
        max_stale_seconds: 3600,
        adapters: Vec::new(),
    };
    Arc::new(Held {
        snapshot,
        directory,
        target,
        policy,
        loaded_at: jiff::Timestamp::now(),
        fresh_at: Some(tokio::time::Instant::now()),
        binds: Arc::new(BTreeMap::new()),
    })
}

/// What a host tells the authority of itself.
fn holding(n: usize, held: &Held) -> Holding {
    Holding {
        target: format!("host-{n:04}"),
        state: "serving".into(),
        generation: held.directory.generation().map(|generation| generation.0),
        store_version: Some(held.snapshot.store_version.to_string()),
        ..Holding::default()
    }
}

/// As a daemon follows: a watch that wakes, and a read where the watch did not tell the change itself.
async fn host(n: usize, link: Link, store: Arc<dyn RegistryStore>, begin: Snapshot, shared: Arc<Shared>) {
    let first = {
        let mut all = shared.0.lock().await;
        all.entry(begin.store_version.clone()).or_insert_with(|| seen(begin.clone())).clone()
    };
    let (tell, told) = watch::channel(Some(holding(n, &first)));
    let (hold, held) = watch::channel(Some(first));
    let (wake, changes, heard_by) = (Arc::new(Notify::new()), Arc::new(Changes::default()), watch::Sender::default());
    let mut heard = heard_by.subscribe();
    let follow = Follow {
        store: store.clone(),
        link: link.clone(),
        held: held.clone(),
        changes: changes.clone(),
        wake: wake.clone(),
        heard_by,
        holding: told,
    };
    tokio::spawn(follow.run());
    loop {
        tokio::select! {
            changed = heard.changed() => {
                if changed.is_err() {
                    return;
                }
                if *heard.borrow_and_update() == HeardBy::Watch {
                    say(Event::Watching, n);
                }
            }
            () = wake.notified() => {
                let now = held.borrow().clone().unwrap();
                let source = next_source(&now.snapshot, &now.target, store.clone());
                let told = match &source {
                    Source::Remote(authority) => changes.since(&authority.target, &now.snapshot.store_version),
                    Source::Store(_) => Vec::new(),
                };
                if let Some(next) = shared.of(told, &now.snapshot).await {
                    tell.send_replace(Some(holding(n, &next)));
                    hold.send_replace(Some(next));
                    say(Event::Held, n);
                    continue;
                }
                match fetch_since(&source, &link, Some(&now.snapshot)).await {
                    Ok(Some(snapshot)) if snapshot.store_version != now.snapshot.store_version => {
                        let mut all = shared.0.lock().await;
                        let next = all.entry(snapshot.store_version.clone()).or_insert_with(|| seen(snapshot)).clone();
                        tell.send_replace(Some(holding(n, &next)));
                        hold.send_replace(Some(next));
                        say(Event::Read, n);
                    }
                    Ok(_) => {}
                    Err(error) => eprintln!("host {n}: {error}"),
                }
            }
        }
    }
}

fn say(event: Event, host: usize) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    println!("{} {host} {now}", event.word());
}
