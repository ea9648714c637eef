//! How long the registry's own work takes on this machine: reading, indexing and asking a large one, and many writers at
//! once. `cargo bench --bench registry`. It reports; nothing here judges. On a machine that does other things too, look at the
//! processor's time: what this thread itself used.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]
use serde_json::{Map, Value, json};
use stado_fleet::directory::Directory;
use stado_fleet::document::Document;
use stado_fleet::store::local::LocalStore;
use stado_fleet::store::{Expected, RegistryStore, Swap};
use stado_fleet::validate::validate;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HOSTS: usize = 1_000;
const SERVICES: usize = 10_000;
const ROUNDS: usize = 10;
const ASKED: usize = 1_000_000;
const WRITERS: usize = 200;

/// Each service on one host, each host with adapters for the services of the next one.
fn registry() -> Vec<u8> {
    let targets: Vec<Value> = (0..HOSTS).map(target).collect();
    let services: Map<String, Value> = (0..SERVICES)
        .map(|s| {
            let host = format!("host-{}", s % HOSTS);
            let entry = json!({
                "managed_service": format!("service-{s}"), "active_host": host,
                "endpoints": {&host: {"url": format!("http://127.0.0.1:{}", 20_000 + s / HOSTS)}},
                "consumers": {"shop": {"capabilities": ["read"]}, "till": {"capabilities": []}}
            });
            (format!("service-{s}"), entry)
        })
        .collect();
    let document = json!({
        "schema_version": 2, "targets": targets, "coordinators": [],
        "service_directory": {
            "authority": {"target": "host-0", "command": "/opt/stado/bin/stado"}, "generation": 1, "services": services
        }
    });
    serde_json::to_vec_pretty(&document).unwrap()
}

fn target(host: usize) -> Value {
    let own = (host..SERVICES).step_by(HOSTS).map(|s| json!({"name": format!("service-{s}"), "kind": "systemd"}));
    let next = ((host + 1) % HOSTS..SERVICES).step_by(HOSTS).enumerate();
    let adapters = next.map(|(n, s)| {
        json!({"service": format!("service-{s}"), "consumer": "shop", "bind": format!("127.0.0.1:{}", 17_601 + n)})
    });
    json!({
        "name": format!("host-{host}"), "kind": "local", "release_platform": "linux-amd64",
        "ssh": format!("ops@host-{host}.example"), "services": own.collect::<Vec<_>>(),
        "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15,
                             "adapters": adapters.collect::<Vec<_>>()}
    })
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// What this thread has used of a processor so far; nothing where the system does not tell.
fn used() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or_default())
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what}: best {}, median {}", milliseconds(times[0]), milliseconds(times[times.len() / 2]));
}

/// Parse, validate and index, each round from the bytes.
fn reading(bytes: &Arc<[u8]>) -> Directory {
    let (mut times, mut processor, mut last) = (Vec::new(), Vec::new(), None);
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), used());
        let valid = validate(Document::parse(Arc::clone(bytes)).unwrap()).unwrap();
        last = Some(Directory::build(valid.registry, "host-0".parse().unwrap()));
        times.push(start.elapsed());
        processor.push(used() - before);
    }
    report("parse + validate + index", times);
    report("parse + validate + index, of a processor", processor);
    last.unwrap()
}

fn asking(directory: &Directory) {
    let names: Vec<String> = (0..SERVICES).map(|s| format!("service-{s}")).collect();
    let (start, before) = (Instant::now(), used());
    for n in 0..ASKED {
        black_box(directory.resolve(&names[n % SERVICES], "shop").unwrap());
    }
    let each = |time: Duration| time.as_nanos() as f64 / ASKED as f64;
    println!("resolve: {:.0} ns, {:.0} ns of a processor", each(start.elapsed()), each(used() - before));
}

/// Every writer reads, adds one and swaps until it is applied.
async fn writing() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::open(home.path()).unwrap());
    store.swap(Expected::Absent, b"0".to_vec()).await.unwrap();
    let start = Instant::now();
    let writers: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(increment(Arc::clone(&store)))).collect();
    let mut attempts = 0;
    for writer in writers {
        attempts += writer.await.unwrap();
    }
    let end = store.read().await.unwrap().unwrap();
    println!(
        "{WRITERS} concurrent compare-and-swaps: {}, {attempts} attempts, {} applied",
        milliseconds(start.elapsed()),
        String::from_utf8_lossy(&end.bytes)
    );
}

async fn increment(store: Arc<LocalStore>) -> usize {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let held = store.read().await.unwrap().unwrap();
        let next = std::str::from_utf8(&held.bytes).unwrap().parse::<usize>().unwrap() + 1;
        let swap = store.swap(Expected::Version(held.version), next.to_string().into_bytes()).await.unwrap();
        if matches!(swap, Swap::Applied(_)) {
            return attempts;
        }
    }
}

fn main() {
    let bytes: Arc<[u8]> = registry().into();
    println!("{HOSTS} targets, {SERVICES} services, {:.1} MiB", bytes.len() as f64 / f64::from(1 << 20));
    asking(&reading(&bytes));
    tokio::runtime::Runtime::new().unwrap().block_on(writing());
}
