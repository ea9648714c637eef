//! `registry rollback`: old content under a new generation.
use super::{Draft, EditError, Edited};
use crate::document::{Document, EMPTY_DIRECTORY};
use crate::name::Generation;

/// `held` with the content of `old`. The directory's generation goes on from the held one, since it only ever rises and no
/// resolver takes a directory that goes back.
///
/// # Errors
/// A document that holds a key twice, or a generation at its end.
pub fn restore(held: &Document, old: &Document) -> Result<Edited, EditError> {
    Draft::of(old)?;
    let kept = (held.epoch() > old.epoch()).then(|| under_the_same_authority(held, old));
    let old = kept.as_ref().unwrap_or(old);
    let mut draft = Draft { before: held, value: old.value().clone(), directory: false };
    let next = match (held.generation(), old.generation()) {
        (Some(Generation(held)), Some(Generation(old))) => held.max(old).checked_add(1),
        _ => return Ok(draft.finish()),
    };
    let next =
        next.ok_or_else(|| EditError::config("registry.service_directory.generation: cannot rise any further"))?;
    if held.same_directory(old) {
        return Ok(draft.finish());
    }
    draft.directory()?.insert("generation".into(), next.into());
    let changed = !directory_but_for_generation_is_same(held, old) || others_differ(held, old);
    if !changed {
        return Ok(Edited { document: held.clone(), generation: held.generation(), changed: false });
    }
    Ok(draft.finish())
}

/// What an earlier authority held does not bring it back.
fn under_the_same_authority(held: &Document, old: &Document) -> Document {
    let mut value = old.value().clone();
    let of = |document: &Document| {
        let key = ["service_directory", EMPTY_DIRECTORY].into_iter().find(|key| document.section(key).is_some());
        key.map(|key| (key, document.section(key).and_then(|d| d.get("authority")).cloned()))
    };
    if let (Some((_, Some(authority))), Some((key, _))) = (of(held), of(old))
        && let Some(directory) = value.get_mut(key).and_then(serde_json::Value::as_object_mut)
    {
        directory.insert("authority".into(), authority);
    }
    if let (Some(succession), Some(root)) = (held.section("succession"), value.as_object_mut()) {
        root.insert("succession".into(), succession.clone());
    }
    Document::from_value(value)
}

fn directory_but_for_generation_is_same(held: &Document, old: &Document) -> bool {
    let without = |document: &Document| {
        let block = document.section("service_directory").or_else(|| document.section(EMPTY_DIRECTORY));
        let mut block = block.cloned()?;
        block.as_object_mut()?.shift_remove("generation");
        Some(block)
    };
    without(held) == without(old) && held.section(EMPTY_DIRECTORY).is_some() == old.section(EMPTY_DIRECTORY).is_some()
}

fn others_differ(held: &Document, old: &Document) -> bool {
    let keys = |document: &Document| -> Vec<String> {
        document.value().as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
    };
    let mut all = keys(held);
    all.extend(keys(old));
    all.iter().any(|key| key != "service_directory" && key != EMPTY_DIRECTORY && !held.same_section(old, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::document;

    #[test]
    fn old_content_comes_back_under_the_next_generation() {
        let (old, held) = (document(3, 1111), document(9, 2222));
        let edited = restore(&held, &old).unwrap();
        assert!(edited.changed);
        assert_eq!(edited.generation, Some(Generation(10)));
        assert!(edited.document.same_as(&document(10, 1111)));
    }

    #[test]
    fn what_is_there_already_is_not_written_again() {
        let held = document(9, 2222);
        assert!(!restore(&held, &held).unwrap().changed);
        assert!(!restore(&held, &document(4, 2222)).unwrap().changed, "only the number differs");
        let mut other = document(9, 2222).value().clone();
        other["channels"] = serde_json::json!({});
        let edited = restore(&held, &Document::from_value(other)).unwrap();
        assert!(edited.changed);
        assert_eq!(edited.generation, Some(Generation(9)), "the directory is the same, so its number stays");
    }

    #[test]
    fn an_earlier_authority_does_not_come_back_with_what_it_held() {
        let held = crate::testing::promoted(&document(9, 2222));
        let restored = restore(&held, &document(3, 1111)).unwrap();
        assert!(restored.changed && restored.document.generation() > held.generation());
        assert_eq!((restored.document.epoch(), restored.document.authority()), (1, Some("desk")));
        assert_eq!(restored.document.section("note"), document(3, 1111).section("note"));
    }

    #[test]
    fn a_directory_that_was_not_there_is_taken_as_it_is() {
        let none = crate::testing::empty();
        assert_eq!(restore(&none, &document(4, 1)).unwrap().generation, Some(Generation(4)));
        assert_eq!(restore(&document(4, 1), &none).unwrap().generation, None);
    }
}
