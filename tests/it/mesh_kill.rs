//! A daemon that is killed at random moments under load keeps every promise that it has made.
use crate::support::home::{DEVMESHD, Home};
use crate::support::process::Process;
use crate::support::{PATIENCE, ports, wait_until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stado::client::Api;
use stado::client::wire::{BackendAddr, RegisterRequest};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::sleep;

const ROUNDS: usize = 200;
const NAMES: u16 = 60;
const WRITERS: usize = 4;

fn serve(home: &Home, api: &Api, runtime: &Runtime) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false", "--log-level", "error"]);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        runtime.block_on(api.health()).is_ok()
    });
    daemon
}

/// Registers random names until the daemon is gone; what was acknowledged.
async fn write(api: Api, seed: u64) -> Vec<(String, u16)> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut acknowledged = Vec::new();
    loop {
        let name = format!("service-{}", random.random_range(0..NAMES));
        let backend = BackendAddr { host: "127.0.0.1".into(), port: 9 };
        match api.register(&RegisterRequest { name: name.clone(), backend, ..Default::default() }, None).await {
            Ok(response) => acknowledged.push((name, response.frontend.port)),
            // Someone else has it in this round.
            Err(error) if error.is_conflict() => {}
            Err(_) => return acknowledged,
        }
    }
}

#[test]
fn every_acknowledged_port_comes_back_after_200_kills() {
    let seed: u64 = std::env::var("STADO_TEST_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    eprintln!("STADO_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (mut home, runtime) = (Home::new(), Runtime::new().unwrap());
    let range = ports::block(NAMES + 20);
    home.set("DEVMESH_TCP_FRONTEND_MIN", range.port());
    home.set("DEVMESH_TCP_FRONTEND_MAX", range.last());
    let api = Api::new(home.file(".devmesh/run/devmesh.sock"));
    let mut promised: BTreeMap<String, u16> = BTreeMap::new();
    for round in 0..ROUNDS {
        let daemon = serve(&home, &api, &runtime);
        let listed = runtime.block_on(api.list()).unwrap();
        let listed: BTreeMap<_, _> = listed.into_iter().map(|s| (s.name, s.frontend.port)).collect();
        for (name, port) in &promised {
            assert_eq!(listed.get(name), Some(port), "{name} in round {round}");
        }
        let writers: Vec<_> = (0..WRITERS).map(|_| runtime.spawn(write(api.clone(), random.random()))).collect();
        let moment = Duration::from_micros(random.random_range(0..40_000));
        runtime.block_on(async { sleep(moment).await });
        daemon.kill9();
        for (name, port) in writers.into_iter().flat_map(|writer| runtime.block_on(writer).unwrap()) {
            assert_eq!(*promised.entry(name.clone()).or_insert(port), port, "{name} in round {round}");
        }
    }
    assert_eq!(promised.len(), usize::from(NAMES), "every name was acknowledged at some time");
}
