use super::*;
use crate::disk::{Lock, LockAttempt, publish};
use jiff::Timestamp;
use std::time::Duration;

const CONTRACT_STATE: &str = r#"{"updated_at":"2026-10-20T10:00:00.123456+00:00","target":"worker-host","pid":4242,"state":"serving",
 "generation":7,"store_version":"945077b5e1c74a0c","loaded_at":"2026-10-20T09:59:58+00:00",
 "reason":null,"attempt":0,"next_attempt_at":null,"last_good_refusal":null,"listening":true,
 "adapters":[{"service":"stado-object-api","consumer":"stado-local-agent","bind":"127.0.0.1:18776"}],
 "unserved":[{"service":"brama","consumer":"lem","bind":"127.0.0.1:17601","reason":"could not bind 127.0.0.1:17601: …"}]}"#;

fn paths(home: &tempfile::TempDir) -> PublishedPaths {
    PublishedPaths::beside(&home.path().join("resolver-state.json"))
}

fn now() -> Timestamp {
    "2026-10-20T10:01:00Z".parse().unwrap()
}

fn wait(client: &str, since: &str) -> Wait {
    Wait {
        service: "brama".into(),
        consumer: "lem".into(),
        bind: "127.0.0.1:17601".into(),
        active_host: "control-host".into(),
        endpoint: "127.0.0.1:8080".into(),
        since: since.into(),
        phase: "answer".into(),
        client: Some(client.into()),
        request: Some("GET /v1/models HTTP/1.1".into()),
    }
}

#[test]
fn a_published_state_reads_and_writes_as_the_contract_has_it() {
    let state: ResolverState = serde_json::from_str(CONTRACT_STATE).unwrap();
    let written = serde_json::to_string(&state).unwrap();
    let compact = CONTRACT_STATE.replace("\n ", "");
    assert_eq!(written, compact);
    assert_eq!(stamp("2026-10-20T10:00:00.123456Z".parse().unwrap()), state.updated_at);
    assert_eq!(stamp("2026-10-20T10:00:00Z".parse().unwrap()), "2026-10-20T10:00:00.000000+00:00");
}

#[test]
fn an_older_state_with_nulls_and_gaps_is_read() {
    let text = r#"{"state":"backing_off","pid":7,"generation":null,"adapters":null,"listening":null,"new":{"x":1}}"#;
    let state: ResolverState = serde_json::from_str(text).unwrap();
    assert_eq!((state.state.as_str(), state.pid, state.listening), ("backing_off", 7, false));
    assert!(state.adapters.is_empty() && state.unserved.is_empty());
}

#[test]
fn a_state_counts_only_while_its_publisher_holds_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let paths = paths(&home);
    assert_eq!(publisher(&paths).unwrap(), Publisher::Never { starting: None });

    let mut state: ResolverState = serde_json::from_str(CONTRACT_STATE).unwrap();
    publish(&paths.state, &serde_json::to_vec(&state).unwrap()).unwrap();
    let dead = publisher(&paths).unwrap();
    assert_eq!(dead, Publisher::Dead { state: state.clone(), replaced_by: None });
    assert_eq!(
        dead.dead_sentence().unwrap(),
        "the resolver that published this host's state (pid 4242, state serving at 2026-10-20T10:00:00.123456+00:00) \
         is not running, and no resolver has published since; its listeners went with it"
    );

    let LockAttempt::Held(_lock) = Lock::try_exclusive(&paths.lock, true).unwrap() else { panic!("free") };
    let me = std::process::id();
    assert_eq!(publisher(&paths).unwrap(), Publisher::Dead { state: state.clone(), replaced_by: Some(me) });
    assert_eq!(
        publisher(&paths).unwrap().starting_sentence().unwrap(),
        format!(
            "another resolver (pid {me}) holds the lock and has published nothing yet: it is starting, or it hangs"
        )
    );
    state.pid = me;
    publish(&paths.state, &serde_json::to_vec(&state).unwrap()).unwrap();
    assert_eq!(publisher(&paths).unwrap(), Publisher::Alive(state));
}

#[test]
fn a_refused_connection_is_explained_by_the_published_state() {
    let file = Path::new("/h/resolver-state.json");
    let mut state: ResolverState = serde_json::from_str(CONTRACT_STATE).unwrap();
    let why =
        |state: &ResolverState, bind: &str| Publisher::Alive(state.clone()).why_refused("brama", "lem", bind, file);
    assert_eq!(
        why(&state, "127.0.0.1:17601").unwrap(),
        "this host's resolver (pid 4242) does not serve 127.0.0.1:17601 for brama/lem: could not bind 127.0.0.1:17601: …"
    );
    assert_eq!(why(&state, "127.0.0.1:17602"), None);
    let alive = Publisher::Alive(state.clone());
    assert_eq!(alive.why_unserved("brama", "lem", "127.0.0.1:17601"), why(&state, "127.0.0.1:17601"));
    assert_eq!(alive.why_unserved("brama", "lem", "127.0.0.1:17602"), None);
    assert!(alive.says_not_bound("brama", "lem") && !alive.says_not_bound("stado-object-api", "stado-local-agent"));
    let dead = Publisher::Dead { state: state.clone(), replaced_by: None };
    assert!(dead.why_unserved("brama", "lem", "127.0.0.1:17601").is_none() && !dead.says_not_bound("brama", "lem"));
    let mut refusing = state.clone();
    refusing.adapters.push(AdapterState {
        service: "brama".into(),
        consumer: "lem".into(),
        bind: "127.0.0.1:17601".into(),
    });
    assert!(!Publisher::Alive(refusing).says_not_bound("brama", "lem"), "bound, and refusing");
    state.listening = false;
    state.state = "failed".into();
    assert_eq!(
        why(&state, "127.0.0.1:17602").unwrap(),
        "this host's resolver (pid 4242, state failed at 2026-10-20T10:00:00.123456+00:00) holds no listener: \
         it has published no reason"
    );
    let never = |starting| Publisher::Never { starting }.why_refused("a", "b", "c", file).unwrap();
    assert!(never(None).contains("/h/resolver-state.json") && !never(None).contains("pid"));
    assert!(never(Some(7)).contains("last removed; another resolver (pid 7) holds the lock"));
    let replaced = Publisher::Dead { state, replaced_by: Some(7) }.why_refused("brama", "lem", "x", file).unwrap();
    assert!(replaced.contains("went with it; another resolver (pid 7)"), "{replaced}");
}

#[test]
fn a_state_that_cannot_be_read_is_told_and_the_lock_says_whether_anybody_runs() {
    let home = tempfile::tempdir().unwrap();
    let paths = paths(&home);
    publish(&paths.state, b"{ no state").unwrap();
    let shown = paths.state.display().to_string();
    let dead = publisher(&paths).unwrap();
    let said = dead.unreadable_sentence().unwrap();
    assert!(
        said.starts_with(&format!("the resolver's state at {shown} is not the state this build writes: ")),
        "{said}"
    );
    assert!(said.ends_with("; no resolver runs"), "{said}");
    assert_eq!(dead.why_refused("a", "b", "c", &paths.state), Some(said));
    let LockAttempt::Held(_lock) = Lock::try_exclusive(&paths.lock, true).unwrap() else { panic!("free") };
    let said = publisher(&paths).unwrap().unreadable_sentence().unwrap();
    assert!(said.contains(&format!("; a resolver runs (pid {})", std::process::id())), "{said}");
    publish(&paths.state, br#"{"pid":"seven"}"#).unwrap();
    assert!(publisher(&paths).unwrap().last().is_none());
    std::fs::remove_file(&paths.state).unwrap();
    assert_eq!(publisher(&paths).unwrap(), Publisher::Never { starting: Some(std::process::id()) });
    std::fs::create_dir(&paths.state).unwrap();
    let said = publisher(&paths).unwrap().unreadable_sentence().unwrap();
    assert!(
        said.starts_with(&format!("the resolver's state at {shown} cannot be read: it is not a regular file")),
        "{said}"
    );
}

#[test]
fn routes_are_an_array_and_a_foreign_file_is_named() {
    let home = tempfile::tempdir().unwrap();
    let paths = paths(&home);
    assert!(routes(&paths).unwrap().is_empty());
    publish(&paths.routes, br#"[{"service":"brama","consumer":"lem","later":1,"last_failure":{"hop":"channel"}}]"#)
        .unwrap();
    let read = routes(&paths).unwrap();
    assert_eq!((read[0].service.as_str(), read[0].last_failure.as_ref().unwrap().hop.as_str()), ("brama", "channel"));
    publish(&paths.routes, b"{}").unwrap();
    assert!(routes(&paths).unwrap_err().contains("resolver-routes.json is not the file this build writes"));
}

#[test]
fn a_waiting_list_is_read_or_named_as_unreadable() {
    let home = tempfile::tempdir().unwrap();
    let paths = paths(&home);
    assert_eq!(waits(&paths).unwrap(), None);
    let shown = paths.waiting.display().to_string();

    let written = vec![wait("127.0.0.1:53211", "2026-10-20T10:00:00+00:00")];
    publish(&paths.waiting, &serde_json::to_vec(&written).unwrap()).unwrap();
    assert_eq!(waits(&paths).unwrap().unwrap(), written);

    publish(&paths.waiting, br#"[{"service":"s","since":"2026-10-20T10:00:00Z"}]"#).unwrap();
    assert_eq!(waits(&paths).unwrap().unwrap()[0].phase, "open");

    for text in ["{}", "[", r#"[{"since":"yesterday"}]"#] {
        publish(&paths.waiting, text.as_bytes()).unwrap();
        let sentence = waits(&paths).unwrap_err();
        assert!(
            sentence
                .starts_with(&format!("the resolver's waiting list at {shown} is not the list this build writes: "))
        );
    }
    std::fs::remove_file(&paths.waiting).unwrap();
    std::fs::create_dir(&paths.waiting).unwrap();
    assert_eq!(
        waits(&paths).unwrap_err(),
        format!("the resolver's waiting list at {shown} cannot be read: it is not a regular file")
    );
}

#[test]
fn answers_are_an_object_keyed_by_service() {
    let home = tempfile::tempdir().unwrap();
    let paths = paths(&home);
    assert!(answers(&paths).unwrap().is_empty());
    publish(&paths.answers, br#"{"brama":{"last_answered_at":"2026-10-20T09:00:00+00:00"}}"#).unwrap();
    let read = answers(&paths).unwrap();
    assert_eq!(read["brama"].last_answered_at.as_deref(), Some("2026-10-20T09:00:00+00:00"));
    assert_eq!(read["brama"].first_unanswered_at, None);
}

#[test]
fn a_wait_says_what_it_waits_for_and_who_holds_it() {
    let mut wait = wait("127.0.0.1:53211", "2026-10-20T10:00:00+00:00");
    assert_eq!(
        wait_sentence(&wait, now()),
        "service brama for consumer lem at 127.0.0.1:17601 has waited 60s for the first byte of an answer on an open \
         channel to 127.0.0.1:8080 on control-host: the client holds an accepted connection that receives nothing; ask \
         that host what answers on 127.0.0.1:8080 held by the client at 127.0.0.1:53211: lsof -nP -i :53211 names the \
         process still holding it"
    );
    wait.phase = "open".into();
    wait.client = None;
    assert_eq!(
        wait_sentence(&wait, now()),
        "service brama for consumer lem at 127.0.0.1:17601 has waited 60s to open a channel to 127.0.0.1:8080 on \
         control-host: the client holds an accepted connection that receives nothing; ask that host what answers on \
         127.0.0.1:8080"
    );
}

#[test]
fn waits_on_one_route_are_one_blocker_and_young_ones_none() {
    let refresh = Duration::from_secs(5);
    let mut other = wait("127.0.0.1:4", "2026-10-20T10:00:50Z");
    other.service = "orders".into();
    let waits = [
        other.clone(),
        wait("127.0.0.1:1", "2026-10-20T10:00:30Z"),
        wait("127.0.0.1:2", "2026-10-20T10:00:00Z"),
        wait("127.0.0.1:3", "2026-10-20T10:00:55Z"),
    ];
    assert_eq!(
        blockers(&waits, now(), refresh),
        [
            format!("2 connections on one route, the oldest: {}", wait_sentence(&waits[2], now())),
            wait_sentence(&other, now()),
        ]
    );
    let bind = "127.0.0.1:17601".parse().unwrap();
    let held = held(&waits[1..], bind, now(), refresh).unwrap();
    assert_eq!(held.count, 2);
    assert_eq!(
        held.to_string(),
        format!(
            "this host's resolver holds 2 connection(s) on that adapter unanswered longer than the 5s refresh interval it \
             declares, so a request sent now would stand behind them: {}; `stado resolver status` lists every one",
            wait_sentence(&waits[2], now())
        )
    );
    assert_eq!(super::held(&waits, "127.0.0.1:1".parse().unwrap(), now(), refresh), None);
}

#[test]
fn a_clock_that_went_back_is_no_wait() {
    let wait = wait("127.0.0.1:1", "2026-10-20T11:00:00Z");
    assert_eq!(waited_seconds(&wait, now()), 0);
}
