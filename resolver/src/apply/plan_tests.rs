use super::*;
use crate::apply::store_address::StoreAddress;
use crate::apply::want::{DEFAULT_BUDGET, Inputs, ignored_keys, want};
use proptest::prelude::*;
use stado_fleet::directory::{NoRoute, Route};
use stado_fleet::name::{Endpoint, LoopbackAddr, Scheme, TargetName};
use std::collections::BTreeMap;
use std::sync::Arc;

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
fn policy(service: &str, consumer: &str, bind: Option<&str>) -> AdapterPolicy {
    AdapterPolicy {
        service: service.parse().unwrap(),
        consumer: consumer.parse().unwrap(),
        bind: bind.map(addr),
        connect_seconds: None,
        idle_seconds: None,
    }
}
fn route(service: &LogicalName, host: &str, local: bool, endpoint: &str) -> Arc<Route> {
    Arc::new(Route {
        service: service.clone(),
        active_host: host.parse::<TargetName>().unwrap(),
        endpoint: Endpoint { scheme: Scheme::Http, addr: endpoint.parse::<LoopbackAddr>().unwrap() },
        capabilities: vec![],
        paths: [].into(),
        local,
        stado_command: None,
    })
}
/// A directory of service → (local, endpoint).
type Places = BTreeMap<String, (bool, String)>;
fn wanted(adapters: &[AdapterPolicy], places: &Places, store: Option<&StoreAddress>) -> Vec<Wanted> {
    let resolve = |service: &LogicalName, _: &ConsumerId| match places.get(service.as_str()) {
        Some((local, endpoint)) => Ok(route(service, "h", *local, endpoint)),
        None => Err(NoRoute::InTransaction { service: service.clone(), profile: "p".into() }),
    };
    let frontend = addr("127.0.0.1:15000");
    let loops =
        |at: SocketAddr, service: &str| (at == frontend).then(|| format!("{service} is a frontend of this daemon"));
    let api_bind = Some(addr("127.0.0.1:17600"));
    want(&Inputs { adapters, resolve: &resolve, remembered: &|_| None, api_bind, store, loops: &loops })
}
fn place(entries: &[(&str, bool, &str)]) -> Places {
    entries.iter().map(|(s, l, e)| ((*s).to_owned(), (*l, (*e).to_owned()))).collect()
}
/// What runs after all steps of a plan succeeded.
fn after(running: &[Running], plan: &Plan) -> Vec<Running> {
    let mut next = running.to_vec();
    for action in &plan.actions {
        match action.clone() {
            Action::Close(id) => next.retain(|r| r.id != id),
            Action::SetBackend(id, backend) => {
                next.iter_mut().filter(|r| r.id == id).for_each(|r| r.backend = backend.clone())
            }
            Action::Bind(id, backend, budget) => next.push(Running { id, backend, budget }),
        }
    }
    next
}
fn reason(wanted: &[Wanted], index: usize) -> &str {
    match &wanted[index].wish {
        Wish::Unserved(reason) => reason,
        Wish::Serve { .. } => panic!("served"),
    }
}

#[test]
fn local_and_remote_routes_and_transactions_become_backends() {
    let adapters =
        [policy("a", "c", Some("127.0.0.1:1")), policy("b", "c", Some("127.0.0.1:2")), policy("t", "c", None)];
    let places = place(&[("a", true, "127.0.0.1:9"), ("b", false, "127.0.0.1:9")]);
    let wanted = wanted(&adapters, &places, None);
    assert!(
        matches!(&wanted[0].wish, Wish::Serve { backend: Backend::Fleet(r), budget } if r.local && r.endpoint.addr.port == 9 && *budget == DEFAULT_BUDGET)
    );
    assert!(matches!(&wanted[1].wish, Wish::Serve { backend: Backend::Fleet(r), .. } if r.active_host.as_str() == "h"));
    assert!(matches!(&wanted[2].wish, Wish::Serve { backend: Backend::None(why), .. }
        if &**why == "service \"t\" is unavailable during placement transaction for \"p\""));
}

#[test]
fn only_the_adapter_on_the_stores_own_address_is_left_unserved() {
    let adapters = [policy("a", "c", Some("127.0.0.1:18776")), policy("b", "c", Some("127.0.0.1:18777"))];
    let places = place(&[("a", false, "127.0.0.1:9"), ("b", false, "127.0.0.1:9")]);
    let store = StoreAddress::parse("http://127.0.0.1:18776").unwrap();
    let on_authority = wanted(&adapters, &places, Some(&store));
    assert!(reason(&on_authority, 0).contains("storage.stado.url = http://127.0.0.1:18776"));
    assert!(matches!(on_authority[1].wish, Wish::Serve { .. }));
    let elsewhere = wanted(&adapters, &places, None);
    assert!(elsewhere.iter().all(|w| matches!(w.wish, Wish::Serve { .. })));
}

#[test]
fn a_route_that_leads_back_into_this_resolver_is_refused_and_not_bound() {
    let adapters = [
        policy("a", "c", Some("127.0.0.1:5")),
        policy("b", "c", Some("127.0.0.1:6")),
        policy("x", "c", Some("127.0.0.1:7")),
    ];
    let places = place(&[("a", true, "127.0.0.1:5"), ("b", true, "localhost:5"), ("x", true, "127.0.0.1:17600")]);
    let wanted = wanted(&adapters, &places, None);
    assert_eq!(
        reason(&wanted, 0),
        "service a resolves to 127.0.0.1:5, which is this adapter's own bind: the service directory must carry the address the service listens on, not the stable port published for its clients"
    );
    assert!(reason(&wanted, 1).contains("this resolver's own adapter for a"));
    assert!(reason(&wanted, 2).contains("this resolver's own API"));
    assert!(wanted.iter().all(|w| w.led_back), "said in a field, whatever the sentence");
    // The same address on another host is no loop.
    let remote = place(&[("a", false, "127.0.0.1:5"), ("b", false, "127.0.0.1:5"), ("x", false, "127.0.0.1:17600")]);
    let elsewhere = super::tests::wanted(&adapters, &remote, None);
    assert!(elsewhere.iter().all(|w| matches!(w.wish, Wish::Serve { .. }) && !w.led_back));
}

#[test]
fn a_route_to_another_listener_of_this_daemon_is_bound_and_refused_with_the_reason() {
    let adapters = [policy("a", "c", Some("127.0.0.1:5")), policy("b", "c", Some("127.0.0.1:6"))];
    let places = place(&[("a", true, "127.0.0.1:15000"), ("b", false, "127.0.0.1:15000")]);
    let wanted = wanted(&adapters, &places, None);
    assert_eq!([wanted[0].led_back, wanted[1].led_back], [true, false]);
    assert!(
        matches!(&wanted[0].wish, Wish::Serve { backend: Backend::None(why), .. } if &**why == "a is a frontend of this daemon")
    );
    assert!(
        matches!(&wanted[1].wish, Wish::Serve { backend: Backend::Fleet(_), .. }),
        "elsewhere it is somebody else's"
    );
}

#[test]
fn duplicates_leave_the_first_one_served() {
    let adapters = [
        policy("a", "c", Some("127.0.0.1:5")),
        policy("b", "c", Some("127.0.0.1:5")),
        policy("a", "d", None),
        policy("a", "d", None),
        policy("a", "e", Some("127.0.0.1:17600")),
    ];
    let wanted = wanted(&adapters, &place(&[("a", false, "127.0.0.1:9"), ("b", false, "127.0.0.1:9")]), None);
    let served: Vec<bool> = wanted.iter().map(|w| matches!(w.wish, Wish::Serve { .. })).collect();
    assert_eq!(served, [true, false, true, false, false]);
    assert!(reason(&wanted, 4).contains("resolution API"));
    let plan = plan(&[], &wanted);
    assert_eq!((plan.actions.len(), plan.unserved.len()), (2, 3));
}

#[test]
fn connect_seconds_is_the_budget_and_its_change_rebinds_that_adapter_only() {
    let mut adapters = [policy("a", "c", Some("127.0.0.1:5")), policy("a", "d", Some("127.0.0.1:6"))];
    let places = place(&[("a", false, "127.0.0.1:9")]);
    let running = after(&[], &plan(&[], &wanted(&adapters, &places, None)));
    adapters[0].connect_seconds = Some(3);
    let next = plan(&running, &wanted(&adapters, &places, None));
    assert!(
        matches!(next.actions.as_slice(), [Action::Close(a), Action::Bind(b, _, budget)] if a == b && budget.as_secs() == 3)
    );
}

#[test]
fn a_moved_bind_closes_first_and_ipv6_binds_before_its_ipv4_twin() {
    let places = place(&[("a", false, "127.0.0.1:9"), ("b", false, "127.0.0.1:9")]);
    let running = after(&[], &plan(&[], &wanted(&[policy("a", "c", Some("127.0.0.1:5"))], &places, None)));
    let adapters = [policy("b", "c", Some("127.0.0.1:5")), policy("a", "d", None), policy("a", "c", Some("[::1]:5"))];
    let order: Vec<String> = plan(&running, &wanted(&adapters, &places, None))
        .actions
        .iter()
        .map(|a| match a {
            Action::Close(id) => format!("close {id}"),
            Action::Bind(id, ..) => format!("bind {id} {:?}", id.declared),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(order, ["close a/c", "bind a/c Some([::1]:5)", "bind b/c Some(127.0.0.1:5)", "bind a/d None"]);
}

#[test]
fn ignored_keys_are_one_sentence() {
    let mut adapters = [policy("a", "c", None), policy("b", "c", None), policy("b", "d", None)];
    assert_eq!(ignored_keys(&adapters), None);
    adapters[0].idle_seconds = Some(330);
    adapters[2].idle_seconds = Some(1);
    assert!(ignored_keys(&adapters).unwrap().starts_with("idle_seconds of a/c, b/d is ignored"));
}

fn any_policy() -> impl Strategy<Value = AdapterPolicy> {
    ("[a-d]", "[x-z]", proptest::option::of(1_u16..8), proptest::option::of(1_u64..3)).prop_map(|(s, c, port, secs)| {
        AdapterPolicy {
            service: s.parse().unwrap(),
            consumer: c.parse().unwrap(),
            bind: port.map(|p| SocketAddr::from(([127, 0, 0, 1], p))),
            connect_seconds: secs,
            idle_seconds: None,
        }
    })
}
fn any_places() -> impl Strategy<Value = Places> {
    proptest::collection::btree_map("[a-d]", (any::<bool>(), 1_u16..12), 0..4)
        .prop_map(|m| m.into_iter().map(|(k, (l, p))| (k, (l, format!("127.0.0.1:{p}")))).collect())
}

proptest! {
    #[test]
    fn applying_the_same_snapshot_twice_does_nothing(adapters in proptest::collection::vec(any_policy(), 0..8), places in any_places()) {
        let wishes = wanted(&adapters, &places, None);
        let running = after(&[], &plan(&[], &wishes));
        prop_assert!(plan(&running, &wishes).actions.is_empty());
    }

    #[test]
    fn every_declared_adapter_is_served_or_named_and_no_bind_is_used_twice(adapters in proptest::collection::vec(any_policy(), 0..8), places in any_places()) {
        let wishes = wanted(&adapters, &places, None);
        let plan = plan(&[], &wishes);
        prop_assert_eq!(plan.actions.len() + plan.unserved.len(), adapters.len());
        let running = after(&[], &plan);
        let binds: Vec<_> = running.iter().filter_map(|r| r.id.declared).collect();
        prop_assert_eq!(binds.iter().collect::<HashSet<_>>().len(), binds.len());
        prop_assert!(plan.unserved.iter().all(|(_, why)| !why.is_empty()));
    }

    #[test]
    fn a_change_takes_steps_only_for_the_adapters_it_changes(
        before in proptest::collection::vec(any_policy(), 0..8), now in proptest::collection::vec(any_policy(), 0..8), places in any_places(),
    ) {
        let running = after(&[], &plan(&[], &wanted(&before, &places, None)));
        let wishes = wanted(&now, &places, None);
        let next = plan(&running, &wishes);
        for action in &next.actions {
            match action {
                Action::Close(id) => {
                    let budget = running.iter().find(|r| r.id == *id).map(|r| r.budget);
                    let same = |w: &Wanted| w.id == *id && matches!(w.wish, Wish::Serve { budget: b, .. } if Some(b) == budget);
                    prop_assert!(!wishes.iter().any(same));
                }
                Action::Bind(id, _, budget) => prop_assert!(!running.iter().any(|r| r.id == *id && r.budget == *budget)),
                Action::SetBackend(id, backend) => prop_assert!(running.iter().any(|r| r.id == *id && !same_backend(&r.backend, backend))),
            }
        }
        let reached = after(&running, &next);
        prop_assert!(plan(&reached, &wishes).actions.is_empty());
    }
}
