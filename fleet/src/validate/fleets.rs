//! Fleets, and the fleet of each target.
use super::at::{At, Findings};
use super::read::{self, Object};
use crate::name::is_identifier;
use serde_json::Value;

pub(super) fn check(root: &Object, out: &mut Findings) {
    let declared = declared(root, out);
    let at = At::ROOT.key("targets");
    for (i, target) in root.get("targets").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(fleet) = target.get("fleet").filter(|f| !f.is_null()) else { continue };
        let at = at.index(i);
        match fleet.as_str() {
            None => out.add(at.key("fleet"), "must be a string"),
            Some(fleet) if !declared.contains(&fleet) => {
                let name = target.get("name").and_then(Value::as_str).unwrap_or_default();
                out.add(at.key("fleet"), format!("target '{name}' points at undeclared fleet '{fleet}'"));
            }
            Some(_) => {}
        }
    }
}

fn declared<'v>(root: &'v Object, out: &mut Findings) -> Vec<&'v str> {
    let at = At::ROOT.key("fleets");
    let list = root.get("fleets").and_then(|fleets| read::array(fleets, at, out)).unwrap_or_default();
    let mut names: Vec<&str> = Vec::with_capacity(list.len());
    for (i, fleet) in list.iter().enumerate() {
        let at = at.index(i);
        match fleet.get("name").and_then(Value::as_str).filter(|n| is_identifier(n)) {
            None => out.add(at.key("name"), "must be a lowercase fleet identifier"),
            Some(name) if names.contains(&name) => out.add(at.key("name"), format!("duplicate fleet '{name}'")),
            Some(name) => names.push(name),
        }
    }
    names
}
