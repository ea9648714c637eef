//! Another host becomes the authority: the one edit that raises the epoch.
use super::{Draft, EditError, Edited};
use crate::document::Document;
use crate::name::{Generation, TargetName};
use serde_json::{Map, Value, json};

/// Who becomes the authority.
#[derive(Debug, Clone, Copy)]
pub struct Promotion<'a> {
    /// The host.
    pub target: &'a TargetName,
    /// Absolute path of `stado` there.
    pub command: &'a str,
    /// Now, RFC 3339 UTC.
    pub since: &'a str,
    /// By how much the directory's generation rises: more than one where the authority before may have gone on unseen, so
    /// that readers which know no epochs take the new one all the same.
    pub gap: u64,
}

/// The registry under its next authority. Who was it before becomes a standby of the new one, and follows it when it is back.
///
/// # Errors
/// A registry without a directory, a document that holds a key twice, a number at its end.
pub fn promote(held: &Document, promotion: &Promotion<'_>) -> Result<Edited, EditError> {
    let before = held.authority().map(str::to_owned);
    let end = || EditError::config("the registry's numbers cannot rise any further");
    let epoch = held.epoch().checked_add(1).ok_or_else(end)?;
    let generation =
        held.generation().map_or(0, |Generation(g)| g).checked_add(promotion.gap.max(1)).ok_or_else(end)?;
    let mut draft = Draft::of(held)?;
    let directory = draft.directory()?;
    let authority = directory.entry("authority").or_insert_with(|| Value::Object(Map::new()));
    if let Some(authority) = authority.as_object_mut() {
        authority.insert("target".into(), promotion.target.as_str().into());
        authority.insert("command".into(), promotion.command.into());
    }
    directory.insert("generation".into(), generation.into());
    if let Some(root) = draft.value.as_object_mut() {
        let succession = root.entry("succession").or_insert_with(|| Value::Object(Map::new()));
        if let Some(succession) = succession.as_object_mut() {
            let standbys = succession.get("standbys").and_then(Value::as_array).cloned().unwrap_or_default();
            let other = |name: &Value| name != promotion.target.as_str() && name.as_str() != before.as_deref();
            let standbys: Vec<Value> =
                standbys.into_iter().filter(other).chain(before.clone().map(Value::String)).collect();
            succession.insert("epoch".into(), epoch.into());
            succession.insert("standbys".into(), standbys.into());
            succession.insert("after".into(), json!(before));
            succession.insert("since".into(), promotion.since.into());
        }
    }
    Ok(draft.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{document, empty, promoted};
    use crate::validate::validate;

    #[test]
    fn a_promotion_names_the_new_authority_and_keeps_everything_else() {
        let held = document(7, 5432);
        let next = promoted(&held);
        assert_eq!((next.authority(), next.epoch(), next.generation()), (Some("desk"), 1, Some(Generation(8))));
        let valid = validate(next.clone()).unwrap();
        assert_eq!(valid.registry.succession.standbys, ["control".parse().unwrap()], "who was it stands by");
        assert_eq!(valid.registry.succession.after, Some("control".parse().unwrap()));
        for section in ["targets", "note", "coordinators"] {
            assert!(next.same_section(&held, section), "{section}");
        }
        let again = promoted(&next);
        assert_eq!(again.epoch(), 2);
        assert!(
            promote(&empty(), &Promotion { target: &"a".parse().unwrap(), command: "/x", since: "", gap: 1 }).is_err()
        );
    }
}
