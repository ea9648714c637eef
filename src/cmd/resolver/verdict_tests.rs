use super::*;
use crate::cmd::resolver::text::text;
use stado_fleet::ledger::{Answers, RouteFailure};

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
        stranger: None,
        place: Some(Place { host: "control".into(), endpoint: "127.0.0.1:8080".into(), local: false }),
    }
}

fn facts() -> Facts {
    Facts {
        target: Some("worker".into()),
        here: "worker".into(),
        is_here: true,
        publisher: Publisher::Alive(serving()),
        state_file: "/h/.stado/resolver-state.json".into(),
        pulse: Some(Pulse::Answers),
        version: "1.2.3",
        waits: Ok(vec![]),
        routes: vec![],
        answers: AnswersFile::new(),
        heard: vec![],
        unread: vec![],
        policy: Some(Policy { refresh_seconds: 5, max_stale_seconds: 15 }),
        api: Some(("127.0.0.1:17600".into(), Some(true))),
        api_stranger: None,
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
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.split_off(keys.len() - 2), ["daemon", "routes"], "additions come last");
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
    assert_eq!((report.verdict, report.stale, &report.target), ("ready", true, &None), "no generation is held");
    assert!(text(&report).starts_with("resolver - state=serving verdict=ready generation=- stale=yes\n"));
}

#[test]
fn who_holds_no_generation_is_stale_whether_or_not_there_is_a_registry() {
    let nothing = |s: &mut ResolverState| (s.generation, s.loaded_at) = (None, None);
    assert!(conclude(alive(nothing), now()).stale);
    let unread =
        Facts { policy: None, authority: Authority { generation: None, ..facts().authority }, ..alive(nothing) };
    assert!(text(&conclude(unread, now())).lines().next().unwrap().ends_with(" generation=- stale=yes"));
    assert!(conclude(Facts { is_here: false, ..facts() }, now()).stale, "of another host none is known");
    assert!(!conclude(Facts { policy: None, ..facts() }, now()).stale, "one that is held and not behind is not");
}

#[test]
fn a_stranger_at_the_ports_of_a_daemon_that_is_gone_is_named_and_is_not_the_daemon() {
    let mut adapter = adapter(true);
    adapter.stranger = Some("pid 77 (python3)".into());
    let facts = Facts {
        publisher: Publisher::Dead { state: serving(), replaced_by: None },
        api: Some(("127.0.0.1:17600".into(), Some(true))),
        api_stranger: Some("pid 78 (nc)".into()),
        adapters: vec![adapter],
        ..facts()
    };
    let report = conclude(facts, now());
    assert_eq!(
        (report.verdict, report.api.listening, report.adapters[0].listening),
        ("down", Some(false), Some(false))
    );
    assert_eq!(
        report.blockers[..2],
        [
            "no resolver of this home runs, and the port of the resolution API, 127.0.0.1:17600, is held by pid 78 (nc): a resolver cannot \
             start before that is stopped, or before this host has another `api_bind`",
            "no resolver of this home runs, and whoever connects to the brama adapter for consumer lem at 127.0.0.1:17601 reaches pid 77 \
             (python3)",
        ]
    );
    assert!(report.blockers[2].starts_with("the resolver that published this host's state (pid 4242"));
    assert!(
        text(&report).contains("\napi 127.0.0.1:17600 not-listening\nadapter brama consumer=lem 127.0.0.1:17601 not-")
    );
}

#[test]
fn nobody_ever_published() {
    let facts = Facts {
        publisher: Publisher::Never { starting: None },
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
            ..ledger::Unserved::default()
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
            ..ledger::Unserved::default()
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

#[test]
fn one_that_starts_and_one_that_was_replaced_are_told_from_none_at_all() {
    let blockers = |publisher| conclude(Facts { publisher, ..facts() }, now()).blockers;
    let starting = blockers(Publisher::Never { starting: Some(9) });
    assert_eq!(
        starting[1],
        "another resolver (pid 9) holds the lock and has published nothing yet: it is starting, or it hangs"
    );
    let replaced = blockers(Publisher::Dead { state: serving(), replaced_by: Some(9) });
    assert!(replaced[0].starts_with("the resolver that published this host's state (pid 4242, "), "{replaced:?}");
    assert_eq!(replaced[1], starting[1]);
}

#[test]
fn a_state_that_nobody_can_read_is_a_verdict_and_no_error() {
    let why = "the resolver's state at /h/s is not the state this build writes: x".to_owned();
    let facts = |holder| Facts {
        publisher: Publisher::Unreadable { why: why.clone(), holder },
        api: Some(("127.0.0.1:17600".into(), Some(holder.is_some()))),
        ..facts()
    };
    let dead = conclude(facts(None), now());
    assert_eq!((dead.verdict, dead.state.as_str(), dead.pid), ("down", "unpublished", None));
    assert_eq!(dead.blockers[0], format!("{why}; no resolver runs"));
    assert_eq!(dead.routes[0].trouble.as_ref().unwrap().hop, "adapter");
    let alive = conclude(facts(Some(Some(7))), now());
    assert_eq!(alive.verdict, "degraded");
    assert!(alive.blockers[0].contains("a resolver runs (pid 7)"), "{:?}", alive.blockers);
    assert_eq!(alive.routes[0].trouble, None, "its adapter listens");
}

#[test]
fn a_stopped_resolver_is_told_from_a_dead_one_and_from_one_that_answers() {
    let report = |stopped| conclude(Facts { pulse: Some(Pulse::Silent { stopped }), ..facts() }, now());
    let stopped = report(true);
    assert_eq!((stopped.verdict, stopped.state.as_str(), stopped.pid), ("degraded", "serving", Some(4242)));
    assert_eq!(stopped.blockers, [ledger::hung_sentence(4242, "-", pulse_limit(), true)]);
    let daemon = stopped.daemon.unwrap();
    assert_eq!((daemon.answering, daemon.stopped), (Some(false), true));
    assert_eq!(stopped.routes[0].trouble.as_ref().unwrap().hop, "adapter");
    assert!(report(false).blockers[0].contains("it hangs or has no time"));
    let well = conclude(facts(), now()).daemon.unwrap();
    assert_eq!((well.answering, well.stopped), (Some(true), false));
}

fn pulse_limit() -> Duration {
    crate::cmd::resolver::pulse::LIMIT
}

#[test]
fn files_that_are_not_written_any_more_are_said_to_be_old() {
    let old = |version: Option<&str>| {
        let version = version.map(str::to_owned);
        alive(move |s| {
            s.version = version;
            s.updated_at = "2026-10-20T09:58:00+00:00".into();
        })
    };
    let report = conclude(old(Some("1.2.3")), now());
    assert_eq!(report.blockers.len(), 1, "{:?}", report.blockers);
    assert!(report.blockers[0].starts_with("what the resolver (pid 4242) has published is 130s old"));
    assert_eq!(conclude(old(None), now()).verdict, "ready", "an older build promises nothing");
}

#[test]
fn another_version_is_worth_saying_and_stands_in_nobodys_way() {
    let report = conclude(alive(|s| s.version = Some("1.0.0".into())), now());
    assert_eq!(report.verdict, "ready");
    assert!(report.warnings[0].contains("(pid 4242) is version 1.0.0 and this command is version 1.2.3"));
    assert!(conclude(alive(|s| s.version = Some("1.2.3".into())), now()).warnings.is_empty());
}

#[test]
fn a_list_whose_publisher_is_gone_holds_nobody() {
    let wait = Wait { service: "brama".into(), since: "2026-10-20T09:00:00+00:00".into(), ..Wait::default() };
    let dead = Facts {
        publisher: Publisher::Dead { state: serving(), replaced_by: None },
        waits: Ok(vec![wait.clone()]),
        ..facts()
    };
    let report = conclude(dead, now());
    assert!(report.waiting_opens.is_empty() && report.blockers.len() == 1, "{:?}", report.blockers);
    let unreadable = Facts { waits: Err("the waiting list cannot be read".into()), ..facts() };
    assert_eq!(conclude(unreadable, now()).blockers, ["the waiting list cannot be read"]);
}

fn failure(at: &str, hop: &str) -> RouteFailure {
    RouteFailure { at: at.into(), hop: hop.into(), cause: "why".into(), blame: "remote".into() }
}

fn used(change: impl FnOnce(&mut RouteState)) -> RouteState {
    let mut row = RouteState {
        service: "brama".into(),
        consumer: "lem".into(),
        active: 2,
        opened: 14,
        down_per_second: 2048,
        last_success_at: Some("2026-10-20T10:00:00.000000+00:00".into()),
        ..RouteState::default()
    };
    change(&mut row);
    row
}

#[test]
fn a_route_tells_its_way_its_traffic_and_its_last_failure() {
    let link = LinkState {
        host: "control".into(),
        carrier: "multiplex".into(),
        path: "lan".into(),
        rtt_us: Some(340),
        ..LinkState::default()
    };
    let row = used(|row| row.last_failure = Some(failure("2026-10-20T09:00:00.000000+00:00", "session")));
    let report = conclude(Facts { routes: vec![row.clone()], ..alive(|s| s.links = vec![link.clone()]) }, now());
    assert!(report.warnings.is_empty(), "it has worked since");
    assert_eq!(
        text(&report).lines().last().unwrap(),
        "route brama consumer=lem -> 127.0.0.1:8080 on control multiplex path=lan rtt=0.3ms active=2 opened=14 up=0B/s \
         down=2.0KiB/s last-success=2026-10-20T10:00:00.000000+00:00 last-failure=2026-10-20T09:00:00.000000+00:00 (the \
         session failed: why)"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["routes"][0]["carrier"], &json["routes"][0]["rtt_us"]), (&"multiplex".into(), &340.into()));
    assert_eq!(json["routes"][0]["trouble"], serde_json::Value::Null);

    let gone =
        Facts { publisher: Publisher::Dead { state: serving(), replaced_by: None }, routes: vec![row], ..facts() };
    let route = conclude(gone, now()).routes.remove(0);
    assert_eq!((route.active, route.down_per_second, route.carrier), (0, 0, None), "it went with its resolver");
    assert!(route.last_success_at.is_some() && route.trouble.unwrap().cause.contains("is not running"));
}

#[test]
fn the_trouble_of_a_route_is_the_first_hop_that_fails() {
    let trouble = |facts: Facts| conclude(facts, now()).routes.remove(0).trouble.map(|trouble| trouble.hop);
    assert_eq!(trouble(facts()), None);
    assert_eq!(trouble(Facts { adapters: vec![adapter(false)], ..facts() }), Some("adapter"));
    for hop in ["adapter", "session", "channel", "service"] {
        let row = used(|row| row.last_failure = Some(failure("2026-10-20T10:00:05.000000+00:00", hop)));
        let report = conclude(Facts { routes: vec![row], ..facts() }, now());
        assert_eq!(report.routes[0].trouble.as_ref().unwrap().hop, hop);
        assert_eq!(report.verdict, "ready", "the resolver does what it can");
        assert_eq!(
            report.warnings,
            [format!(
                "the brama adapter for consumer lem at 127.0.0.1:17601 has reached nothing since \
                 2026-10-20T10:00:05.000000+00:00: the {hop} failed: why"
            )]
        );
    }
    let waits = |phase: &str| {
        let wait = Wait {
            service: "brama".into(),
            consumer: "lem".into(),
            since: "2026-10-20T09:59:00+00:00".into(),
            phase: phase.into(),
            ..Wait::default()
        };
        Ok(vec![wait.clone(), wait])
    };
    let linked = || alive(|s| s.links = vec![LinkState { host: "control".into(), ..LinkState::default() }]);
    assert_eq!(trouble(Facts { waits: waits("answer"), ..facts() }), Some("service"));
    assert_eq!(trouble(Facts { waits: waits("open"), ..facts() }), Some("session"), "no session stands");
    let report = conclude(Facts { waits: waits("open"), ..linked() }, now());
    assert_eq!((report.routes[0].trouble.as_ref().unwrap().hop, report.routes[0].waiting), ("channel", 2));
    let mut here = adapter(true);
    here.place = here.place.map(|place| Place { local: true, ..place });
    let local = Facts { waits: waits("open"), adapters: vec![here], ..facts() };
    assert_eq!(trouble(local), Some("service"));
}

#[test]
fn a_service_that_answers_nobody_is_told_though_nobody_waits_any_more() {
    let row = Answers {
        last_answered_at: None,
        first_unanswered_at: Some("2026-10-20T09:59:00+00:00".into()),
        last_unanswered_at: Some("2026-10-20T10:00:09+00:00".into()),
    };
    let facts = Facts { answers: AnswersFile::from([("brama".to_owned(), row)]), ..facts() };
    let report = conclude(facts, now());
    assert_eq!(report.verdict, "ready");
    assert!(report.warnings[0].starts_with("service brama has taken every request since 2026-10-20T09:59:00+00:00"));
    assert_eq!(report.routes[0].trouble.as_ref().unwrap().hop, "service");
    assert_eq!(serde_json::to_value(&report).unwrap()["routes"][0]["first_unanswered_at"], "2026-10-20T09:59:00+00:00");
}
