//! `succession`: who may follow the authority.
use super::at::{At, Findings};
use super::read::{Object, object, optional_array, optional_text, some, texts};
use super::targets::Targets;
use crate::document::Succession;
use serde_json::Value;

pub(super) fn read(root: &Object, targets: &Targets<'_>, out: &mut Findings) -> Succession {
    let at = At::ROOT.key("succession");
    let Some(succession) = root.get("succession").and_then(|s| object(s, at, out)) else {
        return Succession::default();
    };
    let epoch = some(succession, "epoch").map(Value::as_u64);
    if epoch == Some(None) {
        out.add(at.key("epoch"), "must be a number that is not negative");
    }
    let list_at = at.key("standbys");
    let mut standbys = Vec::new();
    let names = optional_array(succession, "standbys", at, out);
    for (i, name) in texts(names, list_at, out).into_iter().enumerate() {
        let at = list_at.index(i);
        match targets.get(name) {
            None => out.add(at, "unknown registry target"),
            Some(known) if known.typed.paths.is_empty() => out.add(at, "must declare an SSH connection path"),
            Some(known) if standbys.contains(&known.typed.name) => out.add(at, "duplicate standby"),
            Some(known) => standbys.push(known.typed.name.clone()),
        }
    }
    // Who it was may have been taken out of the registry since.
    let after =
        optional_text(succession, "after", at, out).and_then(|name| Some(targets.get(name)?.typed.name.clone()));
    let since = optional_text(succession, "since", at, out).map(str::to_owned);
    Succession { epoch: epoch.flatten().unwrap_or(0), standbys, after, since }
}

#[cfg(test)]
mod tests {
    use crate::document::Document;
    use crate::testing::document;
    use crate::validate::validate;
    use serde_json::{Value, json};

    fn with(succession: Value) -> Document {
        let mut value = document(7, 1).value().clone();
        value["succession"] = succession;
        Document::from_value(value)
    }

    #[test]
    fn a_succession_is_read_and_a_registry_without_one_is_of_epoch_zero() {
        assert_eq!(validate(document(7, 1)).unwrap().registry.succession, super::Succession::default());
        let read = with(json!({"epoch": 2, "standbys": ["desk"], "after": "gone", "since": "2026-11-30T20:00:00Z"}));
        assert!(read.unknown_keys().iter().all(|key| !key.starts_with("succession")));
        assert_eq!(read.epoch(), 2);
        let read = validate(read).unwrap().registry.succession.clone();
        assert_eq!((read.epoch, read.standbys.len(), read.after), (2, 1, None));
    }

    #[test]
    fn what_cannot_be_a_succession_is_found() {
        let found = |succession| {
            let invalid = validate(with(succession)).unwrap_err();
            invalid.0.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(json!(1)), ["registry.succession: must be an object"]);
        assert_eq!(found(json!({"epoch": -1})), ["registry.succession.epoch: must be a number that is not negative"]);
        assert_eq!(
            found(json!({"standbys": ["desk", "nobody", "desk"]})),
            [
                "registry.succession.standbys[1]: unknown registry target",
                "registry.succession.standbys[2]: duplicate standby"
            ]
        );
    }
}
