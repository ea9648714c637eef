use super::super::backend::Backend;
use super::super::record::Source;
use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn at(seconds: u64) -> Now {
    Now { tick: Duration::from_secs(seconds), wall: jiff::Timestamp::from_second(seconds as i64).unwrap() }
}

fn claim(name: &str, owner: &str, producer: &str, port: u16) -> Publication {
    let addr = format!("127.0.0.1:{port}").parse().unwrap();
    Publication {
        name: name.parse().unwrap(),
        kind: Kind::Tcp,
        app_protocol: String::new(),
        source: Source::Process,
        owner_key: owner.into(),
        producer_id: producer.into(),
        container_id: String::new(),
        backend: Backend { host: "127.0.0.1".into(), port, addr, via: None },
        hostname: None,
        publish: false,
    }
}

fn http(name: &str, host: &str) -> Publication {
    Publication { kind: Kind::Http, hostname: Some(host.into()), ..claim(name, name, name, 1) }
}

fn refused(registry: &Registry, claim: &Publication) -> String {
    registry.check(claim).unwrap_err().to_string()
}

#[test]
fn a_ready_name_refuses_other_owners_and_a_dormant_one_takes_anyone() {
    let mut registry = Registry::default();
    let name: ServiceName = "x".parse().unwrap();
    registry.publish(claim("x", "a", "1", 1), None, at(0)).unwrap();
    let text = refused(&registry, &claim("x", "b", "2", 2));
    assert_eq!(text, "service x is already owned by another registration");
    assert!(registry.publish(claim("x", "a", "3", 3), None, at(1)).is_ok());
    assert!(!registry.withdraw(&name, "1", "stale", at(2)), "the first publication was replaced");
    assert!(registry.withdraw(&name, "3", "gone", at(3)));
    let record = registry.get(&name).unwrap();
    assert_eq!((&*record.reason, record.since, record.producer_id.as_str()), ("gone", at(3), "3"));
    assert!(registry.publish(claim("x", "b", "4", 4), None, at(4)).is_ok());
}

#[test]
fn kind_and_hostname_are_fixed_until_restart() {
    let mut registry = Registry::default();
    registry.publish(http("web", "a.test"), None, at(0)).unwrap();
    registry.withdraw(&"web".parse().unwrap(), "web", "gone", at(1));
    assert_eq!(
        refused(&registry, &claim("web", "w", "w", 1)),
        "service web already exists with kind http; kind is immutable until daemon restart"
    );
    assert_eq!(
        refused(&registry, &http("web", "b.test")),
        "service web already owns hostname a.test; hostname is immutable until daemon restart"
    );
    assert_eq!(refused(&registry, &http("other", "a.test")), "hostname a.test is already owned by service web");
}

#[test]
fn what_an_earlier_run_remembers_keeps_its_hostname_and_binds_its_own_name_to_nothing() {
    let mut registry = Registry::default();
    registry.remember("web".parse().unwrap(), Kind::Http, Place::Host("a.test".into()), "restart", at(0));
    registry.remember("db".parse().unwrap(), Kind::Tcp, Place::Port("127.0.0.1:1".parse().unwrap()), "restart", at(0));
    assert_eq!(refused(&registry, &http("other", "a.test")), "hostname a.test is already owned by service web");
    assert!(registry.publish(http("db", "db.test"), None, at(1)).is_ok(), "the kind may change over a restart");
    registry.publish(http("web", "b.test"), None, at(1)).unwrap();
    assert!(registry.publish(http("other", "a.test"), None, at(2)).is_ok(), "its owner has chosen another one");
    registry.forget(&"db".parse().unwrap());
    assert!(registry.publish(http("third", "db.test"), None, at(2)).is_ok(), "a forgotten name keeps nothing");
}

#[test]
fn a_rename_keeps_everything_and_frees_the_old_name() {
    let mut registry = Registry::default();
    registry.publish(http("web", "a.test"), None, at(0)).unwrap();
    let (from, to) = ("web".parse().unwrap(), "site".parse().unwrap());
    registry.rename(&from, &to).unwrap();
    assert!(registry.get(&from).is_none());
    assert_eq!(registry.get(&to).unwrap().hostname.as_deref(), Some("a.test"));
    assert_eq!(refused(&registry, &http("web", "a.test")), "hostname a.test is already owned by service site");
    assert!(registry.rename(&to, &to).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Publish { name: u8, owner: u8, port: u16 },
    Withdraw { name: u8, producer: usize },
    Forget { name: u8 },
    Rename { from: u8, to: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0u8..3;
    prop_oneof![
        4 => (name.clone(), 0u8..3, 1u16..6).prop_map(|(name, owner, port)| Step::Publish { name, owner, port }),
        4 => (name.clone(), 0usize..12).prop_map(|(name, producer)| Step::Withdraw { name, producer }),
        1 => name.clone().prop_map(|name| Step::Forget { name }),
        1 => (name.clone(), name).prop_map(|(from, to)| Step::Rename { from, to }),
    ]
}

fn service(number: u8) -> ServiceName {
    format!("s{number}").parse().unwrap()
}

proptest! {
    /// Whatever comes in whatever order: only the owner, or the producer itself, replaces a ready backend, only its own goodbye removes it, and the
    /// ports of backends are known exactly.
    #[test]
    fn ownership_holds_over_any_sequence(steps in proptest::collection::vec(step(), 1..60)) {
        let mut registry = Registry::default();
        for (turn, step) in steps.into_iter().enumerate() {
            let now = at(turn as u64);
            let before: Vec<_> = registry.iter().map(|(name, record)| (name.clone(), record.clone())).collect();
            let old = |name: &ServiceName| before.iter().find(|(known, _)| known == name).map(|(_, record)| record.clone());
            match step {
                Step::Publish { name, owner, port } => {
                    let claim = claim(service(name).as_str(), &format!("o{owner}"), &format!("p{}", turn % 12), port);
                    let foreign = |r: &Record| r.owner_key != claim.owner_key && r.producer_id != claim.producer_id;
                    let held = old(&claim.name).is_some_and(|r| r.backend.is_some() && foreign(&r));
                    prop_assert_eq!(registry.publish(claim.clone(), None, now).is_err(), held);
                    let record = registry.get(&claim.name).unwrap();
                    let expected = if held { old(&claim.name).unwrap().producer_id } else { claim.producer_id };
                    prop_assert_eq!(&record.producer_id, &expected);
                }
                Step::Withdraw { name, producer } => {
                    let (name, producer) = (service(name), format!("p{producer}"));
                    let current = old(&name).is_some_and(|r| r.backend.is_some() && r.producer_id == producer);
                    prop_assert_eq!(registry.withdraw(&name, &producer, "gone", now), current);
                    let has = registry.get(&name).is_some_and(|record| record.backend.is_some());
                    prop_assert_eq!(has, old(&name).is_some_and(|r| r.backend.is_some()) && !current);
                }
                Step::Forget { name } => {
                    registry.forget(&service(name));
                    prop_assert!(registry.get(&service(name)).is_none());
                }
                Step::Rename { from, to } => {
                    let possible = old(&service(from)).is_some() && old(&service(to)).is_none();
                    prop_assert_eq!(registry.rename(&service(from), &service(to)).is_ok(), possible);
                }
            }
            for port in 1..6 {
                let used = registry.iter().any(|(_, r)| r.backend.as_ref().is_some_and(|b| b.port == port));
                prop_assert_eq!(registry.is_backend_port(port), used);
            }
        }
    }
}
