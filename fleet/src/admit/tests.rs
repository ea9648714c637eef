use super::*;
use crate::fixture::{example, fleet, valid};
use proptest::prelude::*;
use serde_json::{Value, json};

fn snapshot(value: Value) -> Snapshot {
    Snapshot { valid: Arc::new(valid(value)), store_version: "v".parse().unwrap() }
}

fn edited(change: impl FnOnce(&mut Value)) -> Snapshot {
    let mut value = example("typical").value().clone();
    change(&mut value);
    snapshot(value)
}

fn typical() -> Snapshot {
    edited(|_| {})
}

#[track_caller]
fn refused(new: &Snapshot, sentence: &str) {
    assert_eq!(admit(Some(&typical()), new), Err(Refused(sentence.into())));
}

#[test]
fn the_first_snapshot_is_taken() {
    assert_eq!(admit(None, &typical()), Ok(Admission::NewGeneration));
    assert_eq!(admit(None, &snapshot(json!({"schema_version": 2, "targets": []}))), Ok(Admission::Changed));
}

#[test]
fn the_same_document_only_refreshes() {
    assert_eq!(admit(Some(&typical()), &typical()), Ok(Admission::Unchanged));
    let reordered = edited(|v| {
        let map = v.as_object_mut().unwrap();
        let first = map.shift_remove("service_directory").unwrap();
        map.insert("service_directory".into(), first);
    });
    assert_eq!(admit(Some(&typical()), &reordered), Ok(Admission::Unchanged), "the order of keys says nothing");
}

#[test]
fn other_parts_change_under_one_generation() {
    let other = edited(|v| v["channels"]["notes"] = json!("new"));
    assert_eq!(admit(Some(&typical()), &other), Ok(Admission::Changed));
}

#[test]
fn a_higher_generation_is_taken() {
    let higher = edited(|v| v["service_directory"]["generation"] = json!(8));
    assert_eq!(admit(Some(&typical()), &higher), Ok(Admission::NewGeneration));
}

#[test]
fn a_roll_back_is_refused() {
    let older = edited(|v| v["service_directory"]["generation"] = json!(5));
    refused(&older, "service directory rollback rejected: generation 5 < 7");
}

#[test]
fn a_change_under_one_generation_is_refused() {
    let silent = edited(|v| {
        v["service_directory"]["services"]["orders"]["endpoints"]["gpu-box"]["url"] = json!("tcp://127.0.0.1:6")
    });
    refused(&silent, "service directory changed without advancing generation 7");
    let unknown = edited(|v| v["service_directory"]["policy"] = json!("strict"));
    refused(&unknown, "service directory changed without advancing generation 7");
}

#[test]
fn an_empty_fleet_never_replaces_hosts() {
    refused(
        &snapshot(json!({"schema_version": 2, "targets": []})),
        "the authority served a registry naming no hosts and the recorded copy names 3; keeping the recorded copy, because an empty fleet is what an outage looks like from here and the fallback exists for outages",
    );
}

#[test]
fn a_directory_that_disappears_is_refused() {
    let without = edited(|v| drop(v.as_object_mut().unwrap().shift_remove("service_directory")));
    refused(
        &without,
        "service directory removal rejected: the held registry carries directory generation 7 and the one just read carries no service_directory; push a registry that carries one",
    );
    assert_eq!(admit(Some(&without), &typical()), Ok(Admission::NewGeneration), "a directory may appear");
}

/// A fleet of `hosts` hosts: no directory (0), or a directory of this generation with an endpoint on this port.
fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    (0_usize..3, 0_u64..5, 0_u16..3, 0_u8..2).prop_map(|(hosts, generation, port, note)| {
        let mut value = fleet(hosts.max(1), 1);
        value["note"] = json!(note);
        if hosts == 0 || generation == 0 {
            value.as_object_mut().unwrap().shift_remove("service_directory");
        } else {
            value["service_directory"]["generation"] = json!(generation);
            value["service_directory"]["services"]["service-0"]["endpoints"]["host-0"]["url"] =
                json!(format!("tcp://127.0.0.1:{}", 9000 + port));
        }
        if hosts == 0 {
            value["targets"] = json!([]);
        }
        snapshot(value)
    })
}

proptest! {
    #[test]
    fn whatever_comes_no_generation_goes_back_and_nothing_is_lost(sequence in proptest::collection::vec(any_snapshot(), 1..30)) {
        let mut held: Option<Snapshot> = None;
        for new in sequence {
            let admission = admit(held.as_ref(), &new);
            let generation = |s: &Snapshot| s.valid.registry.directory.as_ref().map(|d| d.generation);
            if let (Ok(admission), Some(held)) = (&admission, &held) {
                prop_assert!(generation(&new) >= generation(held), "no generation goes back, and none disappears");
                prop_assert!(!new.valid.registry.targets.is_empty() || held.valid.registry.targets.is_empty());
                let same = held.valid.document.section("service_directory") == new.valid.document.section("service_directory");
                prop_assert!(same || generation(&new) > generation(held), "content changes only with its number");
                prop_assert_eq!(*admission == Admission::Unchanged, held.valid.document.same_as(&new.valid.document));
                prop_assert_eq!(*admission == Admission::NewGeneration, generation(&new) > generation(held));
            }
            if admission.is_ok() {
                held = Some(new);
            }
        }
    }

    #[test]
    fn an_admitted_snapshot_is_unchanged_the_next_time(one in any_snapshot()) {
        prop_assert_eq!(admit(Some(&one), &one), Ok(Admission::Unchanged));
    }
}
