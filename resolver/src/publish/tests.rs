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

#[tokio::test(start_paused = true)]
async fn a_state_that_does_not_change_is_written_anew_so_that_its_age_tells_a_publisher_that_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let publisher = Publisher::start(paths.clone(), Ledger::new()).await.unwrap();
    publisher.update(|state| state.state = "serving".into());
    until("the state is published", || alive(&paths).is_some()).await;
    let first = alive(&paths).unwrap();
    assert_eq!(first.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    std::fs::write(&paths.waiting, "nope").unwrap();
    sleep(stado_fleet::ledger::BEAT).await;
    until("it is written again", || alive(&paths).is_some_and(|state| state.updated_at != first.updated_at)).await;
    let again = alive(&paths).unwrap();
    assert_eq!(ResolverState { updated_at: first.updated_at.clone(), ..again }, first, "nothing else is another");
    assert_eq!(ledger::waits(&paths).unwrap(), Some(Vec::new()), "and a damaged list is mended with it");
    publisher.finish(|_| ()).await;
}

#[tokio::test]
async fn what_went_through_an_adapter_is_published_and_its_failure_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let paths = paths(dir.path());
    let ledger = Ledger::new();
    let publisher = Publisher::start(paths.clone(), ledger.clone()).await.unwrap();
    let adapter = crate::conn::ledger::testing::Adapter::new(&ledger, "brama", "lem");
    assert!(!paths.routes.exists(), "an adapter that nobody used has no row");
    let rows = || ledger::routes(&paths).unwrap();
    let mut entry = adapter.enter();
    entry.opened();
    entry.down(crate::conn::ledger::Seen::Count(5000));
    until("a row", || rows().first().is_some_and(|row| row.opened == 1 && row.bytes_down == 5000)).await;
    entry.down(crate::conn::ledger::Seen::Count(100_000));
    until("a rate", || rows()[0].down_per_second > 0).await;
    drop(entry);
    until("its end", || rows()[0].active == 0 && rows()[0].down_per_second == 0).await;
    assert_eq!((rows()[0].active_host.as_deref(), rows()[0].bytes_down), (Some("host"), 105_000));

    let began = Instant::now();
    adapter.enter().refused(
        crate::conn::ledger::Refusal::Unreachable,
        "no path",
        (stado_fleet::fault::Blame::Remote, stado_fleet::fault::Hop::Session),
        true,
    );
    until("the failure", || rows()[0].failing().is_some_and(|failure| failure.hop == "session")).await;
    eprintln!("told after {:?}", began.elapsed());
    publisher.finish(|_| ()).await;
    let last = rows().remove(0);

    let next = Ledger::new();
    let publisher = Publisher::start(paths.clone(), next.clone()).await.unwrap();
    let _adapter = crate::conn::ledger::testing::Adapter::new(&next, "brama", "lem");
    let row = next.snapshot_routes().remove(0);
    assert_eq!((row.opened, &row.last_success_at, &row.last_failure), (0, &last.last_success_at, &last.last_failure));
    publisher.finish(|_| ()).await;
}
