use super::*;
use crate::docker::container::{Binding, Phase};
use std::collections::BTreeMap;
use std::time::Duration;

fn listed(id: &str, digest: &str) -> Listed {
    let asks_for = [format!("it.{id}")].into();
    Listed { id: id.into(), name: format!("c-{id}"), asks_for, digest: digest.into() }
}

fn container(id: &str, published: bool) -> Container {
    let labels = [("io.devmesh.enable", "true"), ("io.devmesh.name", "a"), ("io.devmesh.container-port", "80")];
    let bindings = if published { vec![Binding { ip: "127.0.0.1".into(), port: "9".into() }] } else { Vec::new() };
    Container {
        id: id.into(),
        name: format!("c-{id}"),
        started_at: jiff::Timestamp::from_second(100).ok(),
        phase: Phase::Running,
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ports: [("80/tcp".to_owned(), bindings)].into(),
        ..Container::default()
    }
}

fn event(id: &str, what: What, second: i64) -> Event {
    let attributes = BTreeMap::from([("io.devmesh.enable".to_owned(), "true".to_owned())]);
    Event { container: id.into(), what, at: jiff::Timestamp::from_second(second).ok(), attributes }
}

/// A book that knows `id`, inspected.
fn known(id: &str, now: Instant) -> Book {
    let mut book = Book::new(false);
    book.listed(vec![listed(id, "first")], now);
    let question = book.next(now).unwrap();
    assert!(book.answered(&question, Ok(Some(container(id, true))), now).is_none());
    assert_eq!(book.judged().count(), 1);
    book
}

#[tokio::test]
async fn equal_lists_ask_nothing_and_a_changed_entry_asks_again() {
    let now = Instant::now();
    let mut book = known("a", now);
    assert!(book.listed(vec![listed("a", "first")], now).is_empty());
    assert!(book.next(now).is_none());
    book.listed(vec![listed("a", "other port")], now);
    assert_eq!(book.next(now).unwrap().id, "a");
}

#[tokio::test]
async fn what_a_list_misses_is_gone() {
    let now = Instant::now();
    let gone = known("a", now).listed(Vec::new(), now);
    assert_eq!(gone, [Gone { id: "a".into(), reason: "its container c-a is gone".into(), served: true }]);
}

#[tokio::test]
async fn a_goodbye_from_before_the_last_start_is_checked_instead_of_believed() {
    let now = Instant::now();
    let mut book = known("a", now);
    assert!(book.event(event("a", What::Ended("died"), 99), now).is_none());
    assert_eq!(book.judged().count(), 1);
    assert_eq!(book.next(now).unwrap().id, "a");
    let gone = book.event(event("a", What::Ended("died"), 101), now).unwrap();
    assert_eq!(gone.reason, "its container c-a died");
    assert_eq!(book.judged().count(), 0);
}

#[tokio::test]
async fn an_answer_from_before_the_end_revives_nothing() {
    let now = Instant::now();
    let mut book = Book::new(false);
    book.listed(vec![listed("a", "")], now);
    let question = book.next(now).unwrap();
    assert!(book.event(event("a", What::Ended("died"), 101), now).is_some());
    book.event(event("a", What::Changed, 102), now);
    assert!(book.answered(&question, Ok(Some(container("a", true))), now).is_none());
    assert_eq!(book.judged().count(), 0, "it was asked of the former life");
    let question = book.next(now).unwrap();
    book.answered(&question, Ok(Some(container("a", true))), now);
    assert_eq!(book.judged().count(), 1);
}

#[tokio::test]
async fn a_change_during_an_inspection_is_inspected_again() {
    let now = Instant::now();
    let mut book = known("a", now);
    book.event(event("a", What::Changed, 101), now);
    let question = book.next(now).unwrap();
    book.event(event("a", What::Changed, 102), now);
    assert!(book.next(now).is_none(), "one at a time");
    book.answered(&question, Ok(Some(container("a", true))), now);
    assert!(book.next(now).is_some());
}

#[tokio::test]
async fn an_unpublished_port_is_looked_for_by_the_schedule_and_then_refused() {
    let start = Instant::now();
    let mut book = Book::new(false);
    book.listed(vec![listed("a", "unpublished")], start);
    let mut now = start;
    let mut waits = Vec::new();
    while let Some(question) = book.next(now) {
        book.answered(&question, Ok(Some(container("a", false))), now);
        let refusal = book.judged().next().unwrap().verdict.refused[0].clone();
        let Some(next) = book.next_at() else {
            assert!(!book.is_pending(&refusal), "after the last one it is a refusal");
            break;
        };
        assert!(book.is_pending(&refusal), "until then it may still come");
        waits.push((next - now).as_millis());
        now = next;
    }
    assert_eq!(waits, [50, 100, 200, 400, 800, 1500, 2000]);
    let later = now + Duration::from_secs(1);
    book.listed(vec![listed("a", "other")], later);
    let question = book.next(later).unwrap();
    let refusal = book.judged().next().unwrap().verdict.refused[0].clone();
    assert!(!book.is_pending(&refusal), "a refusal stays one while it is looked into");
    book.answered(&question, Ok(Some(container("a", false))), later);
    assert!(!book.is_pending(&refusal) && book.next_at().is_some());
}

#[tokio::test]
async fn containers_without_our_label_are_left_alone_and_unlabelled_events_are_looked_into() {
    let now = Instant::now();
    let mut book = Book::new(false);
    let other = BTreeMap::from([("name".to_owned(), "x".to_owned())]);
    book.event(Event { attributes: other, ..event("x", What::Changed, 1) }, now);
    assert!(book.next(now).is_none());
    book.event(Event { attributes: BTreeMap::new(), ..event("y", What::Changed, 1) }, now);
    assert_eq!(book.next(now).unwrap().id, "y");
}

#[tokio::test]
async fn a_container_that_cannot_be_inspected_is_told_and_asked_again_with_the_next_list() {
    let now = Instant::now();
    let mut book = known("a", now);
    book.event(event("a", What::Changed, 101), now);
    let question = book.next(now).unwrap();
    assert!(book.answered(&question, Err("no answer".into()), now).is_none());
    assert_eq!(book.judged().count(), 1, "what is known stays");
    assert_eq!(book.failures().next().unwrap().reason(), "container /c-a could not be inspected: no answer");
    book.listed(vec![listed("a", "first")], now);
    assert!(book.next(now).is_some());
}

#[tokio::test]
async fn questions_to_a_lost_engine_are_asked_of_the_next_one() {
    let now = Instant::now();
    let mut book = Book::new(false);
    book.listed(vec![listed("a", "")], now);
    let question = book.next(now).unwrap();
    book.interrupted(now);
    assert!(book.answered(&question, Ok(Some(container("a", true))), now).is_none());
    assert_eq!(book.judged().count(), 0);
    assert!(book.next(now).is_some());
}

#[tokio::test]
async fn a_running_container_that_did_not_opt_in_is_asked_for_once_and_never_said_to_have_ended() {
    let now = Instant::now();
    let mut book = Book::new(false);
    let mut other = container("a", true);
    other.labels.insert("io.devmesh.enable".into(), "yes".into());
    book.listed(vec![listed("a", "same")], now);
    let question = book.next(now).unwrap();
    assert!(book.answered(&question, Ok(Some(other)), now).is_none());
    for _ in 0..10 {
        assert!(book.listed(vec![listed("a", "same")], now).is_empty());
        assert!(book.next(now).is_none());
    }
    assert!(book.judged().all(|judged| judged.verdict.claims.is_empty() && judged.verdict.refused.is_empty()));
}

#[tokio::test]
async fn a_container_that_never_served_ends_without_a_word() {
    let now = Instant::now();
    let mut book = Book::new(false);
    let restarting = Container { phase: Phase::Stopped, ..container("a", true) };
    // A list shows a container that restarts again and again as running.
    for _ in 0..3 {
        book.listed(vec![listed("a", "restarting")], now);
        let question = book.next(now).unwrap();
        let gone = book.answered(&question, Ok(Some(restarting.clone())), now).unwrap();
        assert!(!gone.served);
    }
    assert!(known("a", now).event(event("a", What::Ended("died"), 101), now).unwrap().served);
}

#[tokio::test]
async fn names_are_awaited_until_their_container_answered_or_could_not() {
    let now = Instant::now();
    let mut book = Book::new(false);
    book.listed(vec![listed("a", ""), listed("b", "")], now);
    let sorted = |book: &Book| {
        let mut names: Vec<String> = book.awaited().into_iter().map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(sorted(&book), ["it.a", "it.b"]);
    let (first, second) = (book.next(now).unwrap(), book.next(now).unwrap());
    book.answered(&first, Ok(Some(container("a", true))), now);
    assert_eq!(sorted(&book), ["it.b"]);
    book.answered(&second, Err("no answer".into()), now);
    assert!(sorted(&book).is_empty(), "one that hangs holds up no other for longer than its deadline");
}
