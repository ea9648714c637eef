//! A directory without services stands under a key of its own, since `service_directory` has at least one (§1.6). Edits see
//! one directory: it is unfolded where one begins, and folded where none of its services is left.
use crate::document::EMPTY_DIRECTORY;
use serde_json::{Map, Value};

/// Makes `service_directory` of a directory without services.
pub(super) fn unfold(root: &mut Value) {
    let Some(root) = root.as_object_mut() else { return };
    if root.contains_key("service_directory") {
        return;
    }
    if let Some(Value::Object(mut directory)) = root.get(EMPTY_DIRECTORY).cloned() {
        directory.insert("services".into(), Value::Object(Map::new()));
        rename(root, EMPTY_DIRECTORY, "service_directory", Value::Object(directory));
    }
}

/// The way back, when no service is left. A directory that has some leaves no empty one beside it.
pub(super) fn fold(root: &mut Value) {
    let Some(root) = root.as_object_mut() else { return };
    let Some(directory) = root.get("service_directory").and_then(Value::as_object) else { return };
    if directory.get("services").and_then(Value::as_object).is_some_and(Map::is_empty) {
        let mut directory = directory.clone();
        directory.shift_remove("services");
        root.shift_remove(EMPTY_DIRECTORY);
        rename(root, "service_directory", EMPTY_DIRECTORY, Value::Object(directory));
    } else {
        root.shift_remove(EMPTY_DIRECTORY);
    }
}

/// Puts `value` under `new` where `old` stood.
fn rename(root: &mut Map<String, Value>, old: &str, new: &str, value: Value) {
    let place = root.keys().position(|key| key == old);
    root.shift_remove(old);
    match place.filter(|place| *place <= root.len()) {
        Some(place) => drop(root.shift_insert(place, new.to_owned(), value)),
        None => drop(root.insert(new.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::{Admission, admit};
    use crate::document::Document;
    use crate::edit::{Draft, remove_host, set_path};
    use crate::name::Generation;
    use crate::testing::{document, snapshot};

    fn without_services() -> Document {
        let mut value = document(4, 1).value().clone();
        value["service_directory"]["services"] = serde_json::json!({});
        value["targets"][1]["service_resolver"]["adapters"] = serde_json::json!([]);
        fold(&mut value);
        Document::from_value(value)
    }

    #[test]
    fn a_name_that_an_empty_directory_does_not_have_ends_its_sentence_all_the_same() {
        let document = without_services();
        let error = Draft::of(&document).unwrap().service("mail").unwrap_err();
        assert_eq!(error.sentence, "no service \"mail\" in service_directory; it declares nothing");
    }

    #[test]
    fn an_empty_directory_has_an_authority_and_a_generation_and_no_service() {
        let held = snapshot(without_services(), "a");
        let directory = held.valid.registry.directory.as_ref().unwrap();
        assert_eq!((directory.authority_target.as_str(), directory.generation), ("control", Generation(4)));
        assert!(directory.services.is_empty());
        assert_eq!(
            (held.valid.document.authority(), held.valid.document.generation()),
            (Some("control"), Some(Generation(4)))
        );
        assert!(held.valid.document.unknown_keys().iter().all(|key| !key.contains("directory")));
        let refused = remove_host(&held.valid.document, "control").unwrap_err().sentence;
        assert!(refused.contains("empty_directory.authority"), "{refused}");
    }

    #[test]
    fn it_becomes_a_directory_with_its_first_service_and_one_again_with_its_last_under_a_rising_generation() {
        let empty = without_services();
        let service = document(1, 1).value()["service_directory"]["services"]["db"].clone();
        let mut draft = Draft::of(&empty).unwrap();
        draft.directory().unwrap()["services"]["db"] = service;
        let first = draft.finish_directory().unwrap();
        assert_eq!(first.generation, Some(Generation(5)));
        assert!(first.document.section(EMPTY_DIRECTORY).is_none());
        let keys = |document: &Document| document.value().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&first.document), keys(&document(1, 1)), "in its place");
        let mut draft = Draft::of(&first.document).unwrap();
        draft.directory().unwrap()["services"].as_object_mut().unwrap().clear();
        let last = draft.finish_directory().unwrap();
        assert_eq!(last.document.section("service_directory"), None);
        assert_eq!(last.generation, Some(Generation(6)));
        for (old, new) in [(&empty, &first.document), (&first.document, &last.document)] {
            let (old, new) = (snapshot(old.clone(), "a"), snapshot(new.clone(), "b"));
            assert_eq!(admit(Some(&old), &new).unwrap(), Admission::NewGeneration);
        }
        let back = admit(Some(&snapshot(last.document, "b")), &snapshot(empty, "a")).unwrap_err();
        assert_eq!(back.0, "service directory rollback rejected: generation 4 < 6");
    }

    #[test]
    fn what_the_contract_refuses_is_refused_still() {
        let refused = |value: Value| crate::validate::validate(Document::from_value(value)).unwrap_err().to_string();
        let mut none = document(1, 1).value().clone();
        none["service_directory"]["services"] = serde_json::json!({});
        assert!(refused(none).starts_with("registry.service_directory.services: must not be empty"));
        let mut bad = without_services().value().clone();
        bad[EMPTY_DIRECTORY]["authority"]["target"] = "nobody".into();
        bad[EMPTY_DIRECTORY]["generation"] = 0.into();
        let refused = refused(bad);
        assert!(refused.starts_with("registry.empty_directory.generation: must be positive"), "{refused}");
        let set = set_path(&without_services(), "note", Value::Null).unwrap();
        assert!(set.edited.document.section(EMPTY_DIRECTORY).is_some(), "other edits leave it alone");
    }
}
