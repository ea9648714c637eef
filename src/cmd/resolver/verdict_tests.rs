use super::*;
use crate::cmd::resolver::text::text;

fn now() -> Timestamp {
    "2026-10-20T10:00:10Z".parse().unwrap()
}

fn serving() -> ResolverState {
    ResolverState {
        updated_at: "2026-10-20T10:00:08+00:00".into(),
        target: Some("worker".into()),
        pid: 4242,
        state: "serving".into(),
        generation: Some(7),
        loaded_at: Some("2026-10-20T10:00:08+00:00".into()),
        listening: true,
        ..Default::default()
    }
}

fn adapter(listening: bool) -> Adapter {
    Adapter {
        service: "brama".into(),
        consumer: "lem".into(),
        bind: Some("127.0.0.1:17601".into()),
        listening: Some(listening),
    }
}

fn facts() -> Facts {
    Facts {
        target: Some("worker".into()),
        here: "worker".into(),
        is_here: true,
        publisher: Publisher::Alive(serving()),
        state_file: "/h/.stado/resolver-state.json".into(),
        waits: Ok(vec![]),
        policy: Some(Policy { refresh_seconds: 5, max_stale_seconds: 15 }),
        api: Some(("127.0.0.1:17600".into(), Some(true))),
        adapters: vec![adapter(true)],
        authority: Authority {
            target: Some("control".into()),
            source: "ssh",
            reachable: true,
            generation: Some(7),
            detail: None,
            epoch: None,
        },
        registry_staleness_seconds: None,
    }
}

fn alive(change: impl FnOnce(&mut ResolverState)) -> Facts {
    let mut state = serving();
    change(&mut state);
    Facts { publisher: Publisher::Alive(state), ..facts() }
}

#[test]
fn everything_well_is_ready() {
    let report = conclude(facts(), now());
    assert_eq!((report.verdict, report.stale, report.generation_age_seconds), ("ready", false, Some(2)));
    assert!(report.blockers.is_empty());
    assert_eq!(
        text(&report),
        "resolver worker state=serving verdict=ready generation=7 stale=no\n\
         api 127.0.0.1:17600 listening\n\
         adapter brama consumer=lem 127.0.0.1:17601 listening\n\
         authority control source=ssh reachable generation=7"
    );
}

#[test]
fn the_json_has_the_contracts_keys_in_order() {
    let value = serde_json::to_value(conclude(facts(), now())).unwrap();
    let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "target state pid updated_at api bind_probe adapters waiting_opens authority generation \
        generation_age_seconds max_stale_seconds stale registry_staleness_seconds reason attempt next_attempt_at verdict blockers";
    assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(value["api"], serde_json::json!({"bind": "127.0.0.1:17600", "listening": true}));
    assert_eq!(value["bind_probe"], "probed: these binds are loopback addresses on worker, which is this host");
}

#[test]
fn the_authoritys_epoch_and_a_refused_registry_are_told() {
    let refused = ledger::RefusedRegistry {
        from: "tower:registry.json".into(),
        generation: Some(4),
        store_version: Some("9450".into()),
        epoch: None,
        reason: "registry of authority epoch 0 rejected: …".into(),
        since: "2026-10-20T09:00:00+00:00".into(),
    };
    let mut facts = alive(|s| {
        s.epoch = Some(1);
        s.refused = Some(refused.clone());
    });
    facts.authority.epoch = Some(2);
    let report = conclude(facts, now());
    let lines = text(&report);
    assert!(lines.contains("\nauthority control source=ssh reachable generation=7 epoch=2\n"), "{lines}");
    let line = "refused generation 4 of tower:registry.json (version 9450) since=2026-10-20T09:00:00+00:00";
    assert!(lines.contains(line), "{lines}");
    let value = serde_json::to_value(report).unwrap();
    assert_eq!((value["epoch"].as_u64(), value["authority"]["epoch"].as_u64()), (Some(1), Some(2)));
    assert_eq!(value["refused"]["generation"], 4);
}

#[test]
fn a_mesh_without_a_fleet_is_ready_with_no_target() {
    let facts = Facts {
        target: None,
        policy: None,
        adapters: vec![],
        authority: Authority {
            target: None,
            source: "local",
            reachable: true,
            generation: None,
            detail: None,
            epoch: None,
        },
        ..alive(|s| {
            s.target = None;
            s.generation = None;
            s.loaded_at = None;
        })
    };
    let report = conclude(facts, now());
    assert_eq!((report.verdict, report.stale, &report.target), ("ready", false, &None));
    assert!(text(&report).starts_with("resolver - state=serving verdict=ready generation=- stale=no\n"));
}

#[test]
fn nobody_ever_published() {
    let facts = Facts {
        publisher: Publisher::Never,
        api: Some(("127.0.0.1:17600".into(), Some(false))),
        adapters: vec![adapter(false)],
        ..facts()
    };
    let report = conclude(facts, now());
    assert_eq!((report.verdict, report.state.as_str(), report.stale), ("down", "unpublished", true));
    assert_eq!(
        report.blockers,
        [
            "no resolver has published state at /h/.stado/resolver-state.json: nothing has served here since that file was \
             last removed",
            "nothing is listening on the resolution API at 127.0.0.1:17600",
            "nothing is listening on the brama adapter for consumer lem at 127.0.0.1:17601",
        ]
    );
}

#[test]
fn a_dead_publisher_counts_for_nothing() {
    let facts = Facts {
        publisher: Publisher::Dead { state: serving(), replaced_by: None },
        api: Some(("127.0.0.1:17600".into(), Some(false))),
        adapters: vec![],
        ..facts()
    };
    let report = conclude(facts, now());
    assert_eq!((report.verdict, report.pid, report.generation), ("down", None, None));
    assert_eq!(
        report.blockers.last().unwrap(),
        "the resolver that published this host's state (pid 4242, state serving at 2026-10-20T10:00:08+00:00) is not \
         running, and no resolver has published since; its listeners went with it"
    );
}

#[test]
fn backing_off_says_why_how_often_and_when_next() {
    let report = conclude(
        alive(|s| {
            s.state = "backing_off".into();
            s.reason = Some("no path answered".into());
            s.attempt = 3;
            s.next_attempt_at = Some("2026-10-20T10:00:13+00:00".into());
        }),
        now(),
    );
    assert_eq!(report.verdict, "degraded");
    assert_eq!(
        report.blockers,
        ["the resolver reports state backing_off: no path answered (failed attempt 3, next read due \
          2026-10-20T10:00:13+00:00)"]
    );
}

#[test]
fn all_blockers_stand_in_the_contracts_order() {
    let wait = Wait {
        service: "brama".into(),
        consumer: "lem".into(),
        bind: "127.0.0.1:17601".into(),
        active_host: "control".into(),
        endpoint: "127.0.0.1:8080".into(),
        since: "2026-10-20T09:59:00+00:00".into(),
        phase: "answer".into(),
        ..Default::default()
    };
    let mut all = alive(|s| {
        s.loaded_at = Some("2026-10-20T09:59:00+00:00".into());
        s.last_good_refusal = Some("not-written".into());
        s.unserved = vec![ledger::Unserved {
            service: "orders".into(),
            consumer: "shop".into(),
            bind: "127.0.0.1:1".into(),
            reason: "held".into(),
            since: None,
        }];
    });
    all.waits = Ok(vec![wait.clone(), wait]);
    all.adapters = vec![adapter(false)];
    all.authority.generation = Some(8);
    all.registry_staleness_seconds = Some(44);
    let report = conclude(all, now());
    let starts = [
        "nothing is listening on the brama adapter",
        "the resolver holds service directory generation 7 and the authority publishes 8",
        "the snapshot the resolver holds is 70s old, past the 15s max-stale window this target declares",
        "this answer read a registry copy 44s old rather than the authority",
        "the resolver is not refreshing this host's last-known-good registry copy (not-written), so",
        "2 connections on one route, the oldest: service brama for consumer lem at 127.0.0.1:17601 has waited 70s",
        "the resolver does not serve the orders adapter for consumer shop at 127.0.0.1:1: held",
    ];
    assert_eq!(report.blockers.len(), starts.len(), "{:#?}", report.blockers);
    for (blocker, start) in report.blockers.iter().zip(starts) {
        assert!(blocker.starts_with(start), "{blocker}");
    }
    assert_eq!(report.waiting_opens.len(), 2);
    assert_eq!(serde_json::to_value(&report).unwrap()["waiting_opens"][0]["waited_seconds"], 70);
}

#[test]
fn an_unserved_adapter_is_one_blocker_not_two() {
    let mut facts = alive(|s| {
        s.unserved = vec![ledger::Unserved {
            service: "brama".into(),
            consumer: "lem".into(),
            bind: "127.0.0.1:17601".into(),
            reason: "could not bind".into(),
            since: None,
        }];
    });
    facts.adapters = vec![adapter(false)];
    assert_eq!(conclude(facts, now()).blockers.len(), 1);
}

#[test]
fn an_unreachable_authority_is_said_with_its_cause_and_a_generation_apart_is_not_guessed() {
    let mut facts = facts();
    facts.authority.reachable = false;
    facts.authority.detail = Some("no path answered".into());
    facts.authority.generation = Some(9);
    let report = conclude(facts, now());
    assert_eq!(report.blockers, ["the registry authority control is unreachable: no path answered"]);
}

#[test]
fn another_host_is_not_judged_by_what_is_here() {
    let facts = Facts {
        target: Some("other".into()),
        is_here: false,
        api: Some(("127.0.0.1:17600".into(), None)),
        adapters: vec![Adapter { listening: None, ..adapter(true) }],
        ..facts()
    };
    let report = conclude(facts, now());
    assert_eq!((report.verdict, report.state.as_str(), report.generation), ("degraded", "unpublished", None));
    assert_eq!(
        report.blockers,
        [
            "what the resolver of other holds is published on other only, and this command ran on worker: run `stado resolver \
          status` there"
        ]
    );
    assert_eq!(
        report.bind_probe,
        "not probed: these binds are loopback addresses on other, and this command ran on worker; ask that host with \
         `stado host inventory other`"
    );
    assert!(
        text(&report).contains("api 127.0.0.1:17600 not-probed\nadapter brama consumer=lem 127.0.0.1:17601 not-probed")
    );
}
