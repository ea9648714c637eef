//! Each kind of server that keeps the registry, its real process stopped for twenty seconds while writers go on. Every one of
//! them is told within its deadline, and what they were told is true: what was acknowledged is there once, what could not be
//! told at most once, what was refused not at all.
use crate::support::etcd::Etcd;
use crate::support::home::{Home, STADO};
use crate::support::process::Process;
use crate::support::s3_server::S3Server;
use crate::support::{PATIENCE, wait_for};
use serde_json::json;
use stado_fleet::fault::Class;
use stado_fleet::store::etcd::{EtcdConfig, EtcdStore};
use stado_fleet::store::object::{Address, NoRoutes, ObjectConfig, ObjectStore, STORAGE_URL};
use stado_fleet::store::{Expected, RegistryStore, StoreError, Swap};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const FROZEN: Duration = Duration::from_secs(20);
const WRITERS: usize = 4;

/// What a writer was told of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Done,
    Unknown,
    No,
}

/// One writer's account: each line was tried once.
#[derive(Debug, Default)]
struct Account {
    lines: Vec<(String, Told)>,
    /// Requests without an answer.
    lost: Vec<StoreError>,
    /// The longest that one of them took.
    longest: Duration,
}

impl Account {
    fn done(&self) -> usize {
        self.lines.iter().filter(|(_, told)| *told == Told::Done).count()
    }

    async fn step(&mut self, store: &dyn RegistryStore, writer: usize) {
        let began = Instant::now();
        let held = store.read().await;
        self.longest = self.longest.max(began.elapsed());
        let held = match held {
            Ok(held) => held,
            Err(error) => return self.lost.push(error),
        };
        let text = held.as_ref().map_or_else(String::new, |held| String::from_utf8_lossy(&held.bytes).into_owned());
        let line = format!("{writer}.{}", self.lines.len());
        let expected = held.map_or(Expected::Absent, |held| Expected::Version(held.version));
        let began = Instant::now();
        let ended = store.swap(expected, format!("{text}{line}\n").into_bytes()).await;
        self.longest = self.longest.max(began.elapsed());
        let told = match ended {
            Ok(Swap::Applied(_)) => Told::Done,
            Ok(Swap::Conflict { .. } | Swap::Absent) => Told::No,
            Ok(Swap::Unknown(error)) => {
                self.lost.push(error);
                Told::Unknown
            }
            Err(error) => {
                self.lost.push(error);
                Told::No
            }
        };
        self.lines.push((line, told));
    }
}

/// Runs writers on `store` before, while and after `process` is frozen, and compares what they were told with what is there.
/// Gives all that they were told by lost requests.
async fn freeze(store: Arc<dyn RegistryStore>, process: &Process, deadline: Duration) -> Vec<StoreError> {
    let (stop, stopped) = watch::channel(false);
    let accounts: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (store, stopped) = (Arc::clone(&store), stopped.clone());
            let (tell, told) = watch::channel(0);
            let writing = tokio::spawn(async move {
                let mut account = Account::default();
                while !*stopped.borrow() {
                    account.step(store.as_ref(), n).await;
                    tell.send_replace(account.done());
                    sleep(Duration::from_millis(30)).await;
                }
                account
            });
            (writing, told)
        })
        .collect();
    let mut progress: Vec<watch::Receiver<usize>> = accounts.iter().map(|(_, told)| told.clone()).collect();
    // Each has one more acknowledged than at the call.
    let mut everyone_goes_on = async || {
        for told in &mut progress {
            let before = *told.borrow();
            timeout(2 * PATIENCE, told.wait_for(|done| *done > before)).await.expect("a write is made").unwrap();
        }
    };
    everyone_goes_on().await;
    process.freeze();
    sleep(FROZEN).await;
    process.thaw();
    everyone_goes_on().await;
    stop.send_replace(true);

    let held = async |account: &Account| {
        let held = store.read().await.expect("the store answers").expect("there is something");
        let text = String::from_utf8_lossy(&held.bytes).into_owned();
        let mut found = HashMap::<&str, usize>::new();
        text.lines().for_each(|line| *found.entry(line).or_default() += 1);
        for (line, told) in &account.lines {
            let times = found.get(line.as_str()).copied().unwrap_or(0);
            let right = match told {
                Told::Done => times == 1,
                Told::Unknown => times <= 1,
                Told::No => times == 0,
            };
            assert!(right, "{line}, of which was said {told:?}, is there {times} times");
        }
    };
    let mut lost = Vec::new();
    for (writing, _) in accounts {
        let account = timeout(2 * PATIENCE, writing).await.expect("a writer ends").unwrap();
        // A busy machine is slow to wake whoever waits.
        assert!(account.longest < deadline + PATIENCE / 3, "told after {:?}", account.longest);
        held(&account).await;
        lost.extend(account.lost);
    }
    lost
}

/// With a deadline below the freeze each writer is told, again and again, and the sentence says whose fault it is.
fn told_each_time(lost: &[StoreError], location: &str) {
    assert!(lost.len() >= 2 * WRITERS, "{lost:?}");
    for error in lost {
        assert!(error.sentence.starts_with(&format!("registry store unreachable ({location}): ")), "{error}");
    }
    assert!(lost.iter().any(|error| error.class == Class::Timeout), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_frozen_for_twenty_seconds_is_told_in_time_and_no_write_is_lost_or_doubled() {
    needs!("etcd");
    let etcd = Etcd::start(1);
    let config = EtcdConfig::parse(&etcd.url("a?timeout=2s"), None, None).unwrap();
    let store = Arc::new(EtcdStore::new(config, None));
    let lost = freeze(store, etcd.members[0].process(), Duration::from_secs(2)).await;
    told_each_time(&lost, "etcd:/a/registry.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_server_frozen_for_twenty_seconds_is_told_in_time_and_no_write_is_lost_or_doubled() {
    needs!("s3-server");
    let server = S3Server::start();
    let store = server.open("frozen", "&timeout=2s");
    store.prove().await.unwrap();
    let lost = freeze(store, server.process(), Duration::from_secs(2)).await;
    told_each_time(&lost, "s3://fleet/frozen/registry.json");
}

/// Its deadline is a minute without a byte, so that nobody gives up: they are told that they wait.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_api_frozen_for_twenty_seconds_is_told_as_a_wait_and_no_write_is_lost_or_doubled() {
    const TOKEN: &str = "the-token-of-probierz";
    let home = Home::new();
    let (server, url) = home.serve_objects(TOKEN);
    let token_file = home.write("token", TOKEN);
    let config = ObjectConfig { address: Address::parse(STORAGE_URL, &url).unwrap(), token_file, ca_file: None };
    let store: Arc<dyn RegistryStore> = Arc::new(ObjectStore::new(config, Arc::new(NoRoutes)).unwrap());

    // A command that comes while it is frozen says at once what it waits for, and ends with the wait.
    let mut desk = Home::new();
    desk.set("STADO_TARGET", "a");
    desk.write(".stado/storage-token", TOKEN);
    let stado = json!({"url": url, "token_file": "~/.stado/storage-token"});
    desk.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
    let pull = std::thread::scope(|scope| {
        let (desk, server) = (&desk, &server);
        let pulling = scope.spawn(move || {
            wait_for("the server is frozen", 2 * PATIENCE, || server.is_stopped().then_some(()));
            let mut pull = desk.start("pull", STADO, &["registry", "pull"]);
            pull.expect("czekam: GET /api/object uri=stado://probierz/registry.json");
            assert!(server.is_stopped(), "told while it waits");
            assert!(pull.ended().is_none(), "{}", pull.log());
            pull
        });
        let lost = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(freeze(store, server, Duration::from_secs(60)))
        });
        assert!(lost.is_empty(), "{lost:?}");
        let mut pull = pulling.join().unwrap();
        // What it reads is lines, and no registry.
        pull.wait();
        pull.log()
    });
    assert!(pull.contains(&format!("gdzie: object API {url}; rodzaj: ")), "{pull}");
    assert!(pull.contains("koniec czekania: GET /api/object"), "{pull}");
}
