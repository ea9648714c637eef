use super::entry::{Entry, Seen};
use super::life::{Life, Note, Phase};
use super::testing::{enter, fleet_backend, frontend};
use super::*;
use crate::conn::Backend;
use jiff::Timestamp;
use proptest::prelude::*;
use stado_fleet::fault::{Blame, Hop};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

const GET: Option<&[u8]> = Some(b"GET /a HTTP/1.1\r\n\r\n");
const OK: Option<&[u8]> = Some(b"HTTP/1.1 200 OK\r\n\r\n");

#[test]
fn the_first_request_waits_since_the_accept_and_later_ones_since_their_first_byte() {
    let mut life = Life::new(at(0));
    assert_eq!(life.opening(at(1)), Some(Note::Begins(Phase::Opening, at(1))));
    assert_eq!(life.opened(), Some(Note::Opened));
    assert_eq!(life.asked(at(5), GET), Some(Note::Begins(Phase::Asked, at(0))));
    assert_eq!(life.request().map(|line| &**line), Some("GET /a HTTP/1.1"));
    assert_eq!(life.asked(at(6), Some(b"rest of the body")), None);
    assert_eq!(life.told(OK), Some(Note::Answered));
    assert_eq!(life.told(Some(b"more")), None);
    assert_eq!(life.asked(at(9), GET), Some(Note::Begins(Phase::Asked, at(9))));
    assert_eq!(life.told(OK), Some(Note::Answered));
    assert_eq!(life.asked(at(10), Some(b"the rest of an upload")), None);
    assert_eq!(life.over(), None);
}

#[test]
fn an_upgraded_connection_and_other_protocols_wait_only_for_the_first_byte() {
    let mut upgraded = Life::new(at(0));
    assert_eq!(upgraded.asked(at(1), GET), Some(Note::Begins(Phase::Asked, at(0))));
    assert_eq!(upgraded.told(Some(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")), Some(Note::Answered));
    assert_eq!(upgraded.asked(at(2), GET), None);

    let mut other = Life::new(at(0));
    assert_eq!(other.asked(at(1), Some(b"\x00\x01")), Some(Note::Begins(Phase::Asked, at(0))));
    assert_eq!(other.request(), None);
    assert_eq!(other.told(None), Some(Note::Answered));
    assert_eq!(other.asked(at(2), GET), None);

    let mut greeting = Life::new(at(0));
    assert_eq!(greeting.told(Some(b"220 ready\r\n")), Some(Note::Answered));
    assert_eq!(greeting.asked(at(1), Some(b"EHLO x\r\n")), None);
}

#[test]
fn a_client_that_ends_its_stream_is_unanswered_until_the_answer_comes_after_all() {
    let mut life = Life::new(at(0));
    life.asked(at(1), GET);
    assert_eq!(life.client_ended(), Some(Note::Unanswered));
    assert_eq!(life.client_ended(), None);
    assert_eq!(life.told(OK), Some(Note::Answered));
    assert_eq!(life.over(), None);
}

#[test]
fn what_was_sent_with_the_end_during_the_open_counts_and_is_not_listed() {
    let mut life = Life::new(at(0));
    life.opening(at(0));
    life.sent_early();
    assert_eq!(life.client_ended(), Some(Note::Unanswered));
    assert_eq!(life.opened(), None);
    assert_eq!(life.asked(at(2), GET), None);
    assert_eq!(life.over(), Some(Note::Unanswered));
}

#[test]
fn a_client_that_leaves_during_the_open_and_asked_nothing_made_no_request() {
    for leave in [Life::client_ended, Life::over] {
        let mut life = Life::new(at(0));
        life.opening(at(0));
        assert_eq!(leave(&mut life), Some(Note::Left));
        assert_eq!((life.opened(), life.over()), (None, None));
    }
}

#[test]
fn a_client_that_has_sent_nothing_has_made_no_request_and_waits_for_nothing() {
    let mut life = Life::new(at(0));
    life.opening(at(0));
    assert_eq!(life.opened(), Some(Note::Opened), "the open that was listed ends");
    // Whoever speaks first on this protocol, nothing was asked: nothing is listed, and nothing goes unanswered.
    assert_eq!((life.client_ended(), life.over()), (None, None));
    assert_eq!(life.request(), None);
}

#[test]
fn an_open_that_times_out_counts_whatever_the_client_sent() {
    let mut life = Life::new(at(0));
    life.opening(at(0));
    assert_eq!(life.open_unanswered(), Some(Note::Unanswered));
    assert_eq!(life.over(), None);
}

#[test]
fn a_refused_open_is_an_answer_of_the_host_and_none_of_the_service() {
    let mut life = Life::new(at(0));
    life.opening(at(0));
    assert_eq!(life.open_refused(), Some(Note::OpenRefused));
    assert_eq!(life.over(), None);
}

#[test]
fn the_first_answer_clears_what_went_unanswered() {
    let mut times = AnswerTimes::default();
    times.no_answer(at(1));
    times.no_answer(at(3));
    assert_eq!(times.unanswered, Some((at(1), at(3))));
    times.answer(at(4));
    assert_eq!(times, AnswerTimes { answered: Some(at(4)), unanswered: None });
    times.no_answer(at(9));
    assert_eq!(times, AnswerTimes { answered: Some(at(4)), unanswered: Some((at(9), at(9))) });
}

/// One thing that can happen to a connection.
#[derive(Debug, Clone)]
enum Step {
    Opening,
    Opened,
    Refused(bool),
    SentEarly,
    Up(Vec<u8>),
    UpUnseen(usize),
    Down(Vec<u8>),
    ClientEnded,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || {
        let word =
            prop_oneof![Just("GET / HTTP/1.1\r\n"), Just("HTTP/1.1 101 x\r\n"), Just("HTTP/1.1 200 x\r\n"), Just("x")];
        word.prop_map(|word| word.as_bytes().to_vec())
    };
    prop_oneof![
        Just(Step::Opening),
        Just(Step::Opened),
        any::<bool>().prop_map(Step::Refused),
        Just(Step::SentEarly),
        bytes().prop_map(Step::Up),
        (1usize..9999).prop_map(Step::UpUnseen),
        bytes().prop_map(Step::Down),
        Just(Step::ClientEnded),
        Just(Step::End),
    ]
}

fn play(entry: &mut Entry, step: &Step) {
    match step {
        Step::Opening => entry.opening(),
        Step::Opened => entry.opened(),
        Step::Refused(answered) => {
            entry.refused(Refusal::Unreachable, "cause", (Blame::Remote, Hop::Session), *answered)
        }
        Step::SentEarly => entry.sent_early(),
        Step::Up(bytes) => entry.up(Seen::Bytes(bytes)),
        Step::UpUnseen(n) => entry.up(Seen::Count(*n)),
        Step::Down(bytes) => entry.down(Seen::Bytes(bytes)),
        Step::ClientEnded => entry.client_ended(),
        Step::End => entry.end(Outcome::Done, None),
    }
}

proptest! {
    /// Wherever a connection is dropped: it gives its place back, leaves no wait, and is remembered once.
    #[test]
    fn an_entry_closes_exactly_once_at_any_drop_point(steps in proptest::collection::vec(step(), 0..40), adapter: bool) {
        let ledger = Ledger::new();
        let backend = if adapter { fleet_backend() } else { Backend::Local("127.0.0.1:1".parse().unwrap()) };
        let (slot, entry) = enter(&ledger, adapter.then_some("c"), &backend, 10);
        let mut entry = entry.unwrap();
        let (mut up, mut down) = (0u64, 0u64);
        for step in &steps {
            play(&mut entry, step);
            match step {
                Step::Up(bytes) => up += bytes.len() as u64,
                Step::UpUnseen(n) => up += *n as u64,
                Step::Down(bytes) => down += bytes.len() as u64,
                _ => {}
            }
            prop_assert!(ledger.snapshot_waits().len() <= usize::from(adapter));
            prop_assert_eq!(slot.counters().active, 1);
        }
        drop(entry);
        prop_assert!(ledger.snapshot_waits().is_empty());
        let counters = ledger.counters("svc").unwrap();
        prop_assert_eq!((counters.active, counters.bytes_up, counters.bytes_down), (0, up, down));
        let recent = ledger.recent("svc");
        prop_assert_eq!(recent.len(), 1);
        prop_assert_eq!((recent[0].bytes_up, recent[0].bytes_down), (up, down));
        prop_assert_eq!(adapter || ledger.snapshot_answers().is_empty(), true);
    }
}

#[test]
fn an_ending_that_nobody_named_is_a_cut() {
    let ledger = Ledger::new();
    let (_slot, entry) = enter(&ledger, None, &Backend::Local("127.0.0.1:1".parse().unwrap()), 1);
    drop(entry);
    assert_eq!(ledger.recent("svc").remove(0).outcome, Outcome::Cut);
}

#[test]
fn a_full_service_lets_nobody_in_and_places_come_back() {
    let ledger = Ledger::new();
    let backend = Backend::Local("127.0.0.1:1".parse().unwrap());
    let (_slot, first) = enter(&ledger, None, &backend, 1);
    assert!(first.is_some() && enter(&ledger, None, &backend, 1).1.is_none());
    drop(first);
    assert!(enter(&ledger, None, &backend, 1).1.is_some());
    assert_eq!(ledger.counters("svc").unwrap().refused_limit, 1);
}

#[test]
fn the_ring_of_ended_connections_is_bounded_and_newest_first() {
    let ledger = Ledger::new();
    let backend = Backend::Local("127.0.0.1:1".parse().unwrap());
    let mut slots = Vec::new();
    for n in 0..100u64 {
        let (slot, entry) = enter(&ledger, None, &backend, 1);
        entry.unwrap().up(Seen::Count(usize::try_from(n).unwrap()));
        slots.push(slot);
    }
    let recent = ledger.recent("svc");
    assert!(recent.len() < 50 && recent[0].bytes_up == 99, "{}", recent.len());
    drop(slots);
    assert_eq!(ledger.counters("svc"), None, "a service without frontends is forgotten");
}

#[test]
fn counters_are_kept_per_service_and_consumer_and_summed() {
    let ledger = Ledger::new();
    let backend = fleet_backend();
    let (_a, one) = enter(&ledger, Some("a"), &backend, 9);
    let (_b, two) = enter(&ledger, Some("b"), &backend, 9);
    one.unwrap().up(Seen::Count(1));
    two.unwrap().up(Seen::Count(10));
    assert_eq!(ledger.counters("svc").unwrap().bytes_up, 11);
    let mut all: Vec<u64> = ledger.all_counters().into_iter().map(|(_, _, counters)| counters.bytes_up).collect();
    all.sort_unstable();
    assert_eq!(all, [1, 10]);
}

#[tokio::test(start_paused = true)]
async fn the_publisher_is_woken_by_waits_and_answers_and_by_nothing_else() {
    let ledger = Ledger::new();
    let (_slot, entry) = enter(&ledger, Some("c"), &fleet_backend(), 9);
    let mut entry = entry.unwrap();
    let woken =
        async |ledger: &Ledger| tokio::time::timeout(std::time::Duration::from_secs(1), ledger.changed()).await.is_ok();
    assert!(!woken(&ledger).await);
    entry.opening();
    assert!(woken(&ledger).await && !woken(&ledger).await);
    entry.opened();
    entry.up(Seen::Bytes(b"GET / HTTP/1.1\r\n\r\n"));
    assert!(woken(&ledger).await);
    entry.up(Seen::Bytes(b"body"));
    assert!(!woken(&ledger).await);
    entry.down(Seen::Bytes(b"HTTP/1.1 200 OK\r\n"));
    assert!(woken(&ledger).await);
    drop(entry);
    assert!(!woken(&ledger).await);
}

#[test]
fn what_two_processes_saw_is_one_history() {
    let ledger = Ledger::new();
    let row = |answered: Option<i64>, first: Option<i64>, last: Option<i64>| stado_fleet::ledger::Answers {
        last_answered_at: answered.map(|s| waits::seconds(at(s))),
        first_unanswered_at: first.map(|s| waits::seconds(at(s))),
        last_unanswered_at: last.map(|s| waits::seconds(at(s))),
    };
    let merge = |row| ledger.merge_answers(&AnswersFile::from([("svc".to_owned(), row)]));
    merge(row(Some(5), Some(7), Some(9)));
    merge(row(Some(6), Some(8), Some(12)));
    assert_eq!(ledger.snapshot_answers()["svc"], row(Some(6), Some(7), Some(12)));
    merge(row(Some(10), None, None));
    assert_eq!(ledger.snapshot_answers()["svc"], row(Some(10), Some(7), Some(12)), "the last one is still unanswered");
    merge(row(Some(13), None, None));
    assert_eq!(ledger.snapshot_answers()["svc"], row(Some(13), None, None));
}

#[test]
fn waits_of_a_process_that_was_taken_over_are_listed_between_ours() {
    let ledger = Ledger::new();
    let (_slot, entry) = enter(&ledger, Some("c"), &fleet_backend(), 9);
    let mut entry = entry.unwrap();
    entry.opening();
    let other = |since: &str| Wait { service: "other".into(), since: since.into(), ..Wait::default() };
    let (early, late) = ("2020-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00");
    ledger.set_foreign_waits(vec![other(late), other(early)]);
    let services: Vec<String> = ledger.snapshot_waits().into_iter().map(|wait| wait.service).collect();
    assert_eq!(services, ["other", "svc", "other"]);
    ledger.set_foreign_waits(Vec::new());
    assert_eq!(ledger.snapshot_waits().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_route_tells_its_last_success_and_its_last_failure_with_the_hop() {
    let ledger = Ledger::new();
    let woken =
        async |ledger: &Ledger| tokio::time::timeout(std::time::Duration::from_secs(1), ledger.traffic()).await.is_ok();
    let (_mesh, entry) = enter(&ledger, None, &Backend::Local("127.0.0.1:1".parse().unwrap()), 9);
    drop(entry);
    assert!(!woken(&ledger).await && ledger.snapshot_routes().is_empty(), "a service of the mesh is no route");

    let (_slot, entry) = enter(&ledger, Some("c"), &fleet_backend(), 1);
    let mut entry = entry.unwrap();
    assert!(woken(&ledger).await && !woken(&ledger).await);
    entry.opening();
    entry.opened();
    entry.up(Seen::Count(7));
    assert!(enter(&ledger, Some("c"), &fleet_backend(), 1).1.is_none());
    assert!(ledger.take_failed() && !ledger.take_failed());
    let row = ledger.snapshot_routes().remove(0);
    assert_eq!(
        (row.service.as_str(), row.consumer.as_str(), row.active, row.opened, row.bytes_up),
        ("svc", "c", 1, 1, 7)
    );
    assert_eq!((row.active_host.as_deref(), row.endpoint.as_deref()), (Some("host"), Some("127.0.0.1:8080")));
    assert!(row.last_success_at.is_some());
    assert!(row.last_failure.unwrap().sentence().starts_with("the adapter failed: it has as many connections"));
    drop(entry);
    assert!(!ledger.take_failed(), "an ending that nobody is to blame for");

    let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    entry.refused(Refusal::Unreachable, "no path", (Blame::Remote, Hop::Session), true);
    drop(entry);
    assert!(ledger.take_failed() && woken(&ledger).await);
    let failing = ledger.snapshot_routes().remove(0);
    assert_eq!(failing.failing().unwrap().sentence(), "the session failed: no path");
    assert_eq!(failing.last_failure.as_ref().unwrap().blame, "remote");
    let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    entry.opened();
    entry.broke_on_the_way("the SSH session ended");
    drop(entry);
    let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    entry.end(Outcome::ServiceReset("reset".into()), Some(Blame::Service));
    drop(entry);
    let ended: Vec<_> = ledger.recent("svc").into_iter().map(|recent| recent.hop).collect();
    assert_eq!(ended, [Some(Hop::Service), Some(Hop::Session), Some(Hop::Session), None, None]);
}

#[tokio::test]
async fn a_probe_that_reaches_its_service_is_no_traffic_and_no_success_and_ends_a_failure() {
    let ledger = Ledger::new();
    let (_slot, entry) = enter(&ledger, Some("c"), &fleet_backend(), 9);
    let mut entry = entry.unwrap();
    entry.refused(Refusal::Unreachable, "no path", (Blame::Remote, Hop::Session), true);
    drop(entry);
    assert!(ledger.snapshot_routes()[0].failing().is_some());

    ledger.announce(["127.0.0.1:50000".parse().unwrap()], Probe::Reaches);
    let mut probe = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    probe.opening();
    ledger.traffic().await;
    probe.opened();
    ledger.traffic().await;
    probe.up(Seen::Bytes(b"GET / HTTP/1.1\r\n\r\n"));
    probe.down(Seen::Bytes(b"HTTP/1.1 200 OK\r\n\r\n"));
    let during = ledger.snapshot_routes().remove(0);
    probe.end(Outcome::Done, None);
    drop(probe);
    let after = ledger.snapshot_routes().remove(0);
    for row in [during, after] {
        assert_eq!((row.active, row.opened, row.bytes_up, row.bytes_down), (0, 0, 0, 0));
        assert!(row.last_success_at.is_none() && row.last_probe_at.is_some(), "{row:?}");
        assert!(row.failing().is_none() && row.last_failure.is_some(), "{row:?}");
    }
    assert!(ledger.overview()[0].last_reached.is_some(), "the way is there");
    // The next one from the same port is a client's.
    let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    entry.opened();
    let row = ledger.snapshot_routes().remove(0);
    assert!(row.opened == 1 && row.active == 1 && row.last_success_at.is_some(), "{row:?}");
}

#[test]
fn a_service_that_breaks_off_without_a_byte_was_no_success() {
    let ledger = Ledger::new();
    let _slot = ledger.slot(&frontend(Some("c")));
    let connect = |answer: &[u8], hop: Option<Hop>| {
        let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
        entry.opened();
        if !answer.is_empty() {
            entry.down(Seen::Bytes(answer));
        }
        match hop {
            Some(Hop::Session) => entry.broke_on_the_way("the SSH session ended"),
            Some(_) => entry.end(Outcome::ServiceReset("nobody is behind it".into()), Some(Blame::Service)),
            None => entry.end(Outcome::Done, None),
        }
        drop(entry);
        ledger.snapshot_routes().remove(0).last_success_at
    };
    assert_eq!(connect(b"", Some(Hop::Service)), None, "it took the connection, and that was all");
    let good = connect(b"hello", None);
    assert!(good.is_some());
    assert_eq!(connect(b"", Some(Hop::Service)), good, "the last one stays");
    assert_ne!(connect(b"220 ready", Some(Hop::Service)), good, "it has said something");
    let good = connect(b"", None);
    assert_ne!(connect(b"", Some(Hop::Session)), good, "the way broke, and not the service");
}

#[test]
fn what_a_route_did_before_this_process_is_kept_until_it_does_something_again() {
    let ledger = Ledger::new();
    let before = stado_fleet::ledger::RouteState {
        service: "svc".into(),
        consumer: "c".into(),
        opened: 40,
        last_success_at: Some("2026-10-20T10:00:00.000000+00:00".into()),
        ..Default::default()
    };
    ledger.restore_routes(vec![before.clone()]);
    assert!(ledger.snapshot_routes().is_empty(), "an adapter that is no more has no row");
    let slot = ledger.slot(&frontend(Some("c")));
    let row = ledger.snapshot_routes().remove(0);
    assert_eq!((row.opened, &row.last_success_at), (0, &before.last_success_at));
    let mut entry = enter(&ledger, Some("c"), &fleet_backend(), 9).1.unwrap();
    entry.opened();
    assert_ne!(ledger.snapshot_routes().remove(0).last_success_at, before.last_success_at);
    drop(slot);
}
