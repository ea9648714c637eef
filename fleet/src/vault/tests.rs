//! A vault on disk, and what its file tells a stranger.
use super::contents::check_name;
use super::*;
use crate::fault::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const NOW: &str = "2026-11-30T20:00:00Z";
const SECRET: &str = "correct-horse-battery-staple";

fn event(action: &'static str) -> Event<'static> {
    Event { action, outcome: "done", consumer: "owner", item: Some("db"), ..Event::default() }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn put(vault: &Vault, id: &str, value: &str) {
    let fields = BTreeMap::from([("token".to_owned(), Secret::new(value))]);
    let changed = vault.change(&event("put"), |contents| {
        contents.put(id, fields, Some("password".into()), Some(set(&["production"])), NOW);
        Ok(())
    });
    changed.unwrap();
}

/// A vault with a key in a file.
fn vault() -> (tempfile::TempDir, Vault) {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::create(&dir.path().join("vault"), Some(KeyPlace::File)).unwrap();
    (dir, vault)
}

/// Every byte that is below a directory.
fn bytes_below(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.flat_map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn what_is_kept_is_read_back_by_another_process_and_by_nobody_without_the_key() {
    let (dir, vault) = vault();
    put(&vault, "secret-project", SECRET);
    let place = dir.path().join("vault");
    let other = Vault::open(&place).unwrap();
    let contents = other.contents().unwrap();
    assert_eq!(contents.items["secret-project"].fields["token"].reveal(), SECRET);
    let written = bytes_below(&place);
    for hidden in [SECRET, "secret-project", "production"] {
        let found = written.windows(hidden.len()).any(|at| at == hidden.as_bytes());
        assert!(!found, "{hidden:?} is in the files");
    }
    for file in ["vault.json", "key", "audit.log"] {
        let mode = std::fs::metadata(place.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
    assert!(!format!("{vault:?} {contents:?}").contains(SECRET), "nor in what is printed while looking for a mistake");

    std::fs::set_permissions(place.join("key"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = Vault::open(&place).unwrap_err();
    assert!(refused.sentence.contains("must be readable by its owner alone (chmod 600)"), "{refused}");
    std::fs::remove_file(place.join("key")).unwrap();
    assert!(Vault::open(&place).unwrap_err().sentence.contains("No such file"));
    std::fs::write(place.join("key"), "00".repeat(32)).unwrap();
    std::fs::set_permissions(place.join("key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let wrong = Vault::open(&place).unwrap_err();
    assert!(wrong.sentence.contains("does not open") && wrong.sentence.contains("another vault's key"), "{wrong}");
}

#[test]
fn a_file_that_was_changed_is_not_believed() {
    let (dir, vault) = vault();
    put(&vault, "db", SECRET);
    let file = dir.path().join("vault/vault.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sealed = json["sealed"].as_str().unwrap();
    let flipped = if sealed.starts_with('A') { "B" } else { "A" };
    json["sealed"] = format!("{flipped}{}", &sealed[1..]).into();
    std::fs::write(&file, json.to_string()).unwrap();
    assert!(vault.contents().unwrap_err().sentence.contains("changed by somebody else"));
    // Another head over the same contents is a change too.
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["id"] = "another".into();
    std::fs::write(&file, json.to_string()).unwrap();
    assert!(Vault::open(&dir.path().join("vault")).unwrap_err().sentence.contains("does not open"));
    json["schema_version"] = 2.into();
    std::fs::write(&file, json.to_string()).unwrap();
    assert!(Vault::open(&dir.path().join("vault")).unwrap_err().sentence.contains("is of version 2"));
}

#[test]
fn changes_of_two_writers_are_both_kept_and_a_refused_one_changes_nothing() {
    let (dir, one) = vault();
    let two = Vault::open(&dir.path().join("vault")).unwrap();
    put(&one, "a", "1");
    put(&two, "b", "2");
    let held = one.contents().unwrap();
    assert_eq!(held.items.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(std::sync::Arc::ptr_eq(&held, &one.contents().unwrap()), "not read again while nobody changes it");
    let refused = one.change(&event("put"), |contents| {
        contents.items.clear();
        Err::<(), _>(VaultError::new(Class::Refused, "no"))
    });
    assert_eq!(refused.unwrap_err().sentence, "no");
    assert_eq!(two.contents().unwrap().items.len(), 2);
    assert!(Vault::create(&dir.path().join("vault"), None).unwrap_err().sentence.contains("there is a vault already"));
}

#[test]
fn a_change_that_cannot_be_recorded_is_not_made() {
    let (dir, vault) = vault();
    put(&vault, "a", "1");
    let log = dir.path().join("vault/audit.log");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let refused = vault.change(&event("put"), |contents| {
        contents.remove("a", NOW);
        Ok(())
    });
    assert!(refused.is_err());
    assert!(!vault.contents().unwrap().items["a"].deleted);
}

#[test]
fn a_consumer_reads_what_it_was_granted_and_is_told_nothing_of_the_rest() {
    let mut contents = Contents::default();
    let value = |text: &str| BTreeMap::from([("token".to_owned(), Secret::new(text))]);
    contents.put("db", value("one"), Some("password".into()), None, NOW);
    contents.put("db", value("two"), None, Some(set(&["x"])), NOW);
    contents.put("other", value("three"), None, None, NOW);
    let token = Secret::random().unwrap();
    assert!(contents.grant("shop", set(&["db"]), None, NOW).is_none(), "a first grant needs a token");
    contents.grant("shop", set(&["db", "later"]), Some(&token), NOW);
    assert_eq!(contents.admit("shop", "wrong"), Err(Refused::Stranger));
    assert_eq!(contents.admit("nobody", token.reveal()), Err(Refused::Stranger));
    let grant = contents.admit("shop", token.reveal()).unwrap().clone();
    assert_eq!(contents.read(&grant, "db", "token").unwrap().reveal(), "two");
    assert_eq!(contents.read(&grant, "db", "none"), Err(Refused::Absent));
    assert_eq!(contents.read(&grant, "later", "token"), Err(Refused::Absent));
    assert_eq!(contents.read(&grant, "other", "token"), Err(Refused::NotGranted));
    assert_eq!(contents.read(&grant, "nothing", "token"), Err(Refused::NotGranted));
    let list = contents.list(&grant);
    assert_eq!(list.len(), 1);
    let shown = serde_json::to_string(&list).unwrap();
    let wanted = r#"[{"id":"db","type":"password","tags":["x"],"updated_at":"2026-11-30T20:00:00Z","deleted":false,"versions":2}]"#;
    assert_eq!(shown, wanted);

    assert!(contents.remove("db", NOW) && !contents.remove("db", NOW) && !contents.remove("none", NOW));
    assert_eq!(contents.read(&grant, "db", "token"), Err(Refused::Absent));
    assert!(contents.list(&grant)[0].deleted);
    assert_eq!(contents.revoke("shop", &set(&["db", "never"]), NOW), Some(set(&["db"])));
    assert_eq!(contents.revoke("shop", &set(&["db"]), NOW), None);
    assert_eq!(contents.revoke("shop", &set(&[]), NOW), Some(set(&["later"])));
    assert_eq!(contents.admit("shop", token.reveal()), Err(Refused::Stranger));
    let kept = serde_json::to_string(&contents).unwrap();
    assert!(!kept.contains(token.reveal()), "of a token only its digest is kept");
}

#[test]
fn names_are_those_that_a_line_and_a_header_can_carry() {
    for good in ["a", "probierz-object-api", "team/db.main", "ann@desk:1"] {
        assert_eq!(check_name(good), Ok(()));
    }
    for bad in ["", "a b", "a\nb", "ä", "\"", &"x".repeat(129)] {
        assert!(check_name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn tokens_are_long_and_differ() {
    let (a, b) = (Secret::random().unwrap(), Secret::random().unwrap());
    assert!(a.reveal().len() == 43 && a != b);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    given(&file, &a).unwrap();
    assert!(given(&file, &b).unwrap_err().sentence.contains("is there already"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", a.reveal()));
}
