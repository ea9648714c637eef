use super::*;
use crate::testing::{document, empty, snapshot};
use std::os::unix::fs::PermissionsExt;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn place(home: &tempfile::TempDir) -> LastGood {
    LastGood::new(home.path().join("cache"))
}

#[test]
fn a_copy_is_read_as_it_was_recorded_with_its_age() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    assert!(last_good.read().unwrap().is_none());
    let recorded = snapshot(document(7, 5432), "945077b5");
    last_good.record(&recorded, at("2026-08-19T18:31:00.9Z")).unwrap();

    let meta = std::fs::read_to_string(last_good.sidecar_path()).unwrap();
    assert_eq!(meta, r#"{"read_at":"2026-08-19T18:31:00Z","generation":"945077b5"}"#);
    assert_eq!(std::fs::read(last_good.path()).unwrap(), recorded.valid.document.bytes());
    assert_eq!(std::fs::metadata(last_good.path()).unwrap().permissions().mode() & 0o777, 0o600);

    let copy = last_good.read().unwrap().unwrap();
    assert_eq!(copy.snapshot.store_version.as_str(), "945077b5");
    assert_eq!(
        copy.notice(at("2026-08-20T06:46:35Z"), "Stado object API error HTTP 503: {}"),
        format!(
            "reading the last-known-good registry copy from 44135s ago ({}, read_at 2026-08-19T18:31:00Z, generation \
             945077b5) because the authority did not answer: Stado object API error HTTP 503: {{}}",
            last_good.path().display()
        )
    );
    assert_eq!(copy.age_seconds(at("2026-08-19T17:31:00Z")), 0, "a clock that went back is no age");
}

#[test]
fn a_clock_that_is_an_hour_off_is_said_and_decides_nothing() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let (ahead, now) = (at("2026-08-19T19:31:00Z"), at("2026-08-19T18:31:00Z"));
    last_good.record(&snapshot(document(7, 5432), "a"), ahead).unwrap();
    let copy = last_good.read().unwrap().unwrap();
    let notice = copy.notice(now, "it is down");
    assert!(notice.starts_with("reading the last-known-good registry copy from 0s ago ("), "{notice}");
    assert!(
        notice.ends_with(
            "did not answer: it is down; read_at is 3600s ahead of this host's clock, so how old the copy is cannot be told"
        ),
        "{notice}"
    );
    // Once the clock is right again, the next read counts, although it is "older".
    last_good.record(&snapshot(document(7, 5432), "a"), now).unwrap();
    assert_eq!(last_good.read().unwrap().unwrap().read_at, now);
    last_good.record(&snapshot(document(8, 5432), "b"), at("2026-08-19T17:31:00Z")).unwrap();
    let copy = last_good.read().unwrap().unwrap();
    assert_eq!((copy.snapshot.store_version.as_str(), copy.age_seconds(now)), ("b", 3600), "an hour behind is an age");
}

#[test]
fn a_document_naming_no_hosts_never_replaces_one_that_names_some() {
    // Fleet contract §8, failure 5.
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let now = at("2026-08-19T18:31:00Z");
    last_good.record(&snapshot(empty(), "0e"), now).unwrap();
    last_good.record(&snapshot(document(1, 5432), "a"), now).unwrap();
    for refused in [last_good.record(&snapshot(empty(), "0e"), now), last_good.seed(&snapshot(empty(), "0e"), now)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind, "would-lose-recorded-hosts");
        assert_eq!(
            refused.sentence,
            "the authority served a registry naming no hosts and the recorded copy names 2; keeping the recorded copy, \
             because an empty fleet is what an outage looks like from here and the fallback exists for outages"
        );
    }
    assert_eq!(last_good.read().unwrap().unwrap().snapshot.store_version.as_str(), "a");
}

#[test]
fn a_copy_never_goes_back_unless_a_person_names_the_authority() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let now = at("2026-08-19T18:31:00Z");
    last_good.record(&snapshot(document(9, 5432), "a"), now).unwrap();
    let refused = last_good.record(&snapshot(document(5, 5432), "b"), now).unwrap_err();
    assert_eq!(refused.kind, "rejected-by-this-build");
    assert!(refused.sentence.ends_with("service directory rollback rejected: generation 5 < 9"), "{refused}");
    last_good.seed(&snapshot(document(5, 5432), "b"), now).unwrap();
    assert_eq!(last_good.read().unwrap().unwrap().snapshot.store_version.as_str(), "b");
}

#[test]
fn what_is_not_a_valid_registry_is_never_recorded() {
    // Fleet contract §8, failure 6: a document with a string `targets`.
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let now = at("2026-08-19T18:31:00Z");
    let version = "a".parse().unwrap();
    let strings = br#"{"schema_version":2,"targets":"none"}"#;
    let refused = last_good.record_bytes(strings, &version, now).unwrap_err();
    assert_eq!(refused.kind, "rejected-by-this-build");
    let expected =
        format!("[registry-cache] not recording the last-known-good registry in {}: ", last_good.path().display());
    assert!(refused.sentence.starts_with(&expected), "{refused}");
    assert_eq!(last_good.record_bytes(b"{", &version, now).unwrap_err().kind, "unparseable-document");
    assert!(last_good.read().unwrap().is_none());
    last_good.record_bytes(document(1, 1).bytes(), &version, now).unwrap();
    assert!(last_good.read().unwrap().is_some());
    assert_eq!(LastGood::new("cache").record(&snapshot(empty(), "a"), now).unwrap_err().kind, "no-cache-location");
}

#[test]
fn a_place_that_cannot_be_written_is_said() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("cache"), b"a file").unwrap();
    let refused = place(&home).record(&snapshot(empty(), "a"), at("2026-08-19T18:31:00Z")).unwrap_err();
    assert_eq!(refused.kind, "not-written");
}

#[test]
fn a_writer_that_does_not_go_on_costs_its_readers_no_more_than_a_moment() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let recorded = snapshot(document(7, 5432), "945077b5");
    last_good.record(&recorded, at("2026-08-19T18:31:00Z")).unwrap();
    let lock = Lock::exclusive(&last_good.lock_path()).unwrap();
    let refused = last_good.record(&recorded, at("2026-08-19T18:31:05Z")).unwrap_err();
    assert_eq!(refused.kind, "not-written");
    let held = format!(" has held {} for more than 2s", last_good.lock_path().display());
    assert!(refused.sentence.contains(&held), "{refused}");
    drop(lock);
    last_good.record(&recorded, at("2026-08-19T18:31:05Z")).unwrap();
}

#[test]
fn a_corrupt_copy_is_set_aside_said_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let now = at("2026-08-19T18:31:00Z");
    let good = snapshot(document(1, 5432), "a");
    let files = [last_good.path(), last_good.path(), last_good.sidecar_path(), last_good.sidecar_path()];
    let texts = ["{ torn", r#"{"schema_version":2,"targets":"none"}"#, "{}", r#"{"read_at":"then","generation":"a"}"#];
    for (file, text) in files.into_iter().zip(texts) {
        last_good.record(&good, now).unwrap();
        std::fs::write(&file, text).unwrap();
        let sentence = last_good.read().unwrap_err();
        let copy = disk::set_aside(&file).unwrap();
        assert!(sentence.contains(&format!("kept as {}", copy.display())), "{sentence}");
        assert_eq!(std::fs::read_to_string(copy).unwrap(), text);
        last_good.record(&good, now).unwrap();
        assert!(last_good.read().unwrap().is_some());
    }
}

#[test]
fn half_a_copy_is_said_and_never_taken_for_none_and_a_newer_document_is_never_called_fresh() {
    let home = tempfile::tempdir().unwrap();
    let last_good = place(&home);
    let old = at("2026-08-19T18:31:00Z");
    last_good.record(&snapshot(document(1, 5432), "a"), old).unwrap();
    // A writer that ended between its two files.
    disk::replace(&last_good.path(), document(2, 5432).bytes()).unwrap();
    assert_eq!(last_good.read().unwrap().unwrap().read_at, old);
    std::fs::remove_file(last_good.sidecar_path()).unwrap();
    for _ in 0..2 {
        let sentence = last_good.read().unwrap_err();
        assert!(sentence.contains(&format!("{} is missing", last_good.sidecar_path().display())), "{sentence}");
    }
    // A writer that is at work completes it.
    let lock = Lock::exclusive(&last_good.lock_path()).unwrap();
    assert!(last_good.read().unwrap().is_none());
    drop(lock);
    last_good.record(&snapshot(document(2, 5432), "b"), old).unwrap();
    std::fs::write(last_good.path(), "{ torn").unwrap();
    assert!(last_good.read().is_err() && last_good.read().is_err(), "set aside, and still not none");
    last_good.record(&snapshot(document(2, 5432), "b"), old).unwrap();
    assert!(last_good.read().unwrap().is_some());
}
