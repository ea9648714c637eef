use super::*;
use proptest::prelude::*;

fn facts(service: &str, consumer: Option<&str>, host: &str, port: u16) -> Facts {
    Facts {
        service: service.into(),
        consumer: consumer.map(Arc::from),
        host: host.into(),
        protocol: Protocol::Http1,
        backend: Backend::Local(SocketAddr::from(([127, 0, 0, 1], port)).to_string().parse().unwrap()),
        since: None,
        budget: Duration::from_secs(3),
    }
}

fn sites() -> Sites {
    Sites::new(Ledger::new())
}

#[test]
fn the_mesh_wins_and_the_fleet_has_the_name_back_when_it_leaves() {
    let sites = sites();
    let routes = sites.routes();
    sites.set_fleet(vec![facts("fleet-api", Some("web"), "api.localhost", 1)], Vec::new());
    assert_eq!(&*routes.find("api.localhost").unwrap().service, "fleet-api");
    sites.set("api", || Some(facts("api", None, "api.localhost", 2)));
    assert_eq!(&*routes.find("api.localhost").unwrap().service, "api");
    let shaded = sites.shaded().borrow().clone();
    assert_eq!((&*shaded[0].service, shaded[0].consumer.as_deref()), ("fleet-api", Some("web")));
    assert_eq!(shaded[0].reason, "hostname api.localhost is already owned by service api of this machine's mesh");
    sites.set("api", || None);
    assert_eq!(&*routes.find("api.localhost").unwrap().service, "fleet-api");
    assert!(sites.shaded().borrow().is_empty());
}

#[test]
fn consumers_of_one_service_share_its_hostname_and_two_services_do_not() {
    let sites = sites();
    let all = vec![
        facts("a.b", Some("y"), "a-b.localhost", 1),
        facts("a.b", Some("x"), "a-b.localhost", 1),
        facts("a-b", Some("z"), "a-b.localhost", 2),
    ];
    sites.set_fleet(all, Vec::new());
    assert_eq!(&*sites.routes().find("a-b.localhost").unwrap().service, "a-b");
    let shaded = sites.shaded().borrow().clone();
    assert_eq!(shaded.iter().map(|row| &*row.service).collect::<Vec<_>>(), ["a.b", "a.b"]);
    sites.set_fleet(
        vec![facts("a.b", Some("y"), "a-b.localhost", 1), facts("a.b", Some("x"), "a-b.localhost", 1)],
        Vec::new(),
    );
    assert_eq!(sites.routes().find("a-b.localhost").unwrap().consumer.as_deref(), Some("x"));
    assert!(sites.shaded().borrow().is_empty());
}

#[test]
fn a_change_of_one_service_touches_no_other_and_keeps_its_counters() {
    let sites = sites();
    let routes = sites.routes();
    sites.set("a", || Some(facts("a", None, "a.test", 1)));
    sites.set("b", || Some(facts("b", None, "b.test", 1)));
    let (a, b) = (routes.find("a.test").unwrap(), routes.find("b.test").unwrap());
    sites.set("a", || Some(facts("a", None, "a.test", 2)));
    assert!(Arc::ptr_eq(&b, &routes.find("b.test").unwrap()));
    let moved = routes.find("a.test").unwrap();
    assert!(!Arc::ptr_eq(&a, &moved) && Arc::ptr_eq(&a.stats, &moved.stats) && Arc::ptr_eq(&a.slot, &moved.slot));
    let held = routes.load();
    sites.set("a", || Some(facts("a", None, "a.test", 2)));
    assert!(Arc::ptr_eq(&held, &routes.load()), "saying the same again changes nothing");
}

#[test]
fn another_hostname_leaves_the_first_one_free() {
    let sites = sites();
    sites.set("a", || Some(facts("a", None, "a.test", 1)));
    sites.set("a", || Some(facts("a", None, "b.test", 1)));
    let routes = sites.routes();
    assert!(routes.find("a.test").is_none() && routes.find("b.test").is_some());
}

proptest! {
    /// After any changes the table is what the claims of that moment say, made the slow way.
    #[test]
    fn the_table_is_always_what_is_claimed(steps in proptest::collection::vec((0..3u8, 0..4u8, 0..3u8, 1..3u16), 1..40)) {
        let sites = sites();
        let mut mesh: BTreeMap<String, (String, u16)> = BTreeMap::new();
        let mut fleet: BTreeMap<String, (String, u16)> = BTreeMap::new();
        for (kind, service, host, port) in steps {
            let (service, host) = (format!("s{service}"), format!("h{host}.test"));
            match kind {
                0 => {
                    // The mesh itself gives a hostname to one service only.
                    if mesh.iter().all(|(other, (taken, _))| *other == service || *taken != host) {
                        mesh.insert(service.clone(), (host.clone(), port));
                        sites.set(&service, || Some(facts(&service, None, &host, port)));
                    }
                }
                1 => {
                    mesh.remove(&service);
                    sites.set(&service, || None);
                }
                _ => {
                    if fleet.remove(&service).is_none() {
                        fleet.insert(service, (host, port));
                    }
                    let all = fleet.iter().map(|(service, (host, port))| facts(service, Some("c"), host, *port));
                    sites.set_fleet(all.collect(), Vec::new());
                }
            }
            let table = sites.routes().load();
            let hosts: BTreeSet<&String> = mesh.values().chain(fleet.values()).map(|(host, _)| host).collect();
            prop_assert_eq!(table.len(), hosts.len());
            for host in hosts {
                let of = |all: &BTreeMap<String, (String, u16)>| all.iter().find(|(_, (h, _))| h == host).map(|(s, _)| s.clone());
                let expected = of(&mesh).or_else(|| of(&fleet));
                prop_assert_eq!(table.find(host).map(|site| site.service.to_string()), expected);
            }
            let losers = sites.shaded().borrow().len();
            let all = mesh.len() + fleet.len();
            prop_assert_eq!(losers, all - table.len());
        }
    }
}
