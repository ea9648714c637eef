use super::*;
use crate::conn::ledger::Ledger;
use stado_fleet::ledger::{self, Publisher as Seen};
use std::path::Path;

const PATIENCE: Duration = Duration::from_secs(20);

fn paths(dir: &Path) -> PublishedPaths {
    PublishedPaths::beside(&dir.join("resolver-state.json"))
}

async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        sleep(Duration::from_millis(5)).await;
    }
}

fn alive(paths: &PublishedPaths) -> Option<ResolverState> {
    match ledger::publisher(paths).unwrap() {
        Seen::Alive(state) => Some(state),
        _ => None,
    }
}

#[tokio::test]
async fn starting_publishes_an_empty_waiting_list_under_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    stado_fleet::disk::publish(&paths.waiting, br#"[{"service":"old","since":"2026-10-20T10:00:00+00:00"}]"#).unwrap();
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    assert_eq!(ledger::waits(&paths).unwrap(), Some(Vec::new()));
    assert_eq!(Lock::holder(&paths.lock).unwrap(), Some(Some(std::process::id())));
    assert!(!paths.state.exists(), "nothing is said before there is something to say");
    publisher.finish(|state| state.state = "failed".into()).await;
    assert_eq!(Lock::holder(&paths.lock).unwrap(), None);
}

#[tokio::test]
async fn a_change_is_published_whole_and_belongs_to_a_living_publisher() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    publisher.update(|state| {
        state.state = "serving".into();
        state.target = Some("worker".into());
        state.generation = Some(7);
    });
    until("the state is published", || alive(&paths).is_some_and(|state| state.state == "serving")).await;
    let state = alive(&paths).unwrap();
    assert_eq!((state.pid, state.target.as_deref(), state.generation), (std::process::id(), Some("worker"), Some(7)));
    let (time, zone) = state.updated_at.split_at(26);
    assert_eq!(zone, "+00:00", "{time}");
    publisher.finish(|state| state.listening = false).await;
    assert!(matches!(ledger::publisher(&paths).unwrap(), Seen::Dead { .. }));
}

#[tokio::test]
async fn many_changes_are_few_writes() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    let began = Instant::now();
    let mut inodes = std::collections::BTreeSet::new();
    for n in 0..2000 {
        publisher.update(|state| state.attempt = n);
        if let Ok(file) = std::fs::metadata(&paths.state) {
            inodes.insert(file.modified().unwrap());
        }
        if n % 20 == 0 {
            sleep(Duration::from_millis(2)).await;
        }
    }
    let most = usize::try_from(began.elapsed().as_millis() / 100).unwrap() + 2;
    assert!(inodes.len() <= most, "{} writes, {most} are allowed", inodes.len());
    until("the last change is published", || alive(&paths).is_some_and(|state| state.attempt == 1999)).await;
}

#[tokio::test]
async fn a_held_lock_refuses_and_names_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let first = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    let refused = Publisher::start(paths.clone(), Ledger::new()).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains(&format!("pid {} holds {}", std::process::id(), paths.lock.display())), "{said}");
    drop(first);
    until("the lock is free", || Lock::holder(&paths.lock).unwrap().is_none()).await;
    Publisher::start(paths, Ledger::new()).await.unwrap();
}

#[tokio::test]
async fn a_predecessor_that_is_leaving_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let first = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    let second = tokio::spawn(Publisher::start(paths, Ledger::new()));
    sleep(Duration::from_millis(100)).await;
    assert!(!second.is_finished());
    first.finish(|_| ()).await;
    timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_history_of_answers_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let row = r#"{"brama":{"last_answered_at":"2026-10-20T09:00:00+00:00","first_unanswered_at":"2026-10-20T10:00:00+00:00","last_unanswered_at":"2026-10-20T10:05:00+00:00"}}"#;
    stado_fleet::disk::publish(&paths.answers, row.as_bytes()).unwrap();
    for _ in 0..2 {
        let ledger = Ledger::new();
        let publisher = Publisher::start(paths.clone(), ledger.clone()).await.unwrap();
        assert_eq!(serde_json::to_string(&ledger.snapshot_answers()).unwrap(), row);
        publisher.finish(|_| ()).await;
        assert_eq!(std::fs::read_to_string(&paths.answers).unwrap().trim_end(), row);
    }
}

#[tokio::test]
async fn a_corrupt_history_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    stado_fleet::disk::publish(&paths.answers, b"{half").unwrap();
    let _publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    let aside = std::fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .find(|f| f.file_name().to_string_lossy().contains(".corrupt."));
    assert_eq!(std::fs::read(aside.unwrap().path()).unwrap(), b"{half");
    assert_eq!(ledger::answers(&paths).unwrap(), ledger::AnswersFile::new());
}

#[tokio::test]
async fn a_failing_disk_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    // A directory in the file's place makes the rename fail.
    std::fs::create_dir(&paths.state).unwrap();
    std::fs::write(paths.state.join("in the way"), b"").unwrap();
    publisher.update(|state| state.state = "serving".into());
    sleep(Duration::from_millis(300)).await;
    std::fs::remove_dir_all(&paths.state).unwrap();
    until("the state is published", || alive(&paths).is_some_and(|state| state.state == "serving")).await;
}

#[tokio::test]
async fn where_no_file_can_be_made_nothing_is_published_until_one_can() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    std::fs::write(&home, "in the way").unwrap();
    let paths = paths(&home);
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    assert!(publisher.lock().is_none());
    publisher.update(|state| state.state = "serving".into());
    std::fs::remove_file(&home).unwrap();
    until("the state is published", || alive(&paths).is_some_and(|state| state.state == "serving")).await;
    assert!(publisher.lock().is_some());
    assert_eq!(ledger::waits(&paths).unwrap(), Some(Vec::new()));
    publisher.finish(|state| state.state = "stopped".into()).await;
}

#[tokio::test]
async fn what_a_killed_publisher_left_is_gone_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let left = dir.path().join(".resolver-state.json.AbCdEf");
    std::fs::write(&left, "{").unwrap();
    std::fs::write(dir.path().join(".notes"), "a person's").unwrap();
    let publisher = Publisher::start(paths, Ledger::new()).await.unwrap();
    assert!(!left.exists() && dir.path().join(".notes").exists());
    publisher.finish(|_| {}).await;
}
