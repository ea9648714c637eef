//! The three writes of a placement transaction (fleet contract §1.5, §6.11): the claim, its release, and the commit.
use super::{Draft, EditError, Edited};
use crate::document::Document;
use serde_json::{Map, Value, json};

const TRANSACTIONS: &str = "placement_transactions";
const PROFILES: &str = "placement_profiles";

/// A placement transaction as the registry has it: while it stands, its profile's services are refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Claim {
    /// UUID.
    pub id: String,
    /// Profile.
    pub profile: String,
    /// Where the services run.
    pub from_host: String,
    /// Where they are to run.
    pub to_host: String,
    /// RFC 3339.
    pub started_at: String,
}

/// The transactions of a document, in its order. What cannot be read counts too, with empty parts.
pub fn claims(document: &Document) -> Vec<Claim> {
    let list = document.section(TRANSACTIONS).and_then(Value::as_array);
    list.into_iter().flatten().map(read).collect()
}

fn read(value: &Value) -> Claim {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    Claim {
        id: text("id"),
        profile: text("profile"),
        from_host: text("from_host"),
        to_host: text("to_host"),
        started_at: text("started_at"),
    }
}

/// Adds a claim. Only one transaction may be active, whatever its profile.
///
/// # Errors
/// Another one is.
pub fn claim(document: &Document, claim: &Claim) -> Result<Edited, EditError> {
    let active = claims(document);
    if !active.is_empty() {
        let ids: Vec<&str> = active.iter().map(|c| c.id.as_str()).collect();
        return Err(EditError::refused(format!("another placement transaction is active: {}", ids.join(", "))));
    }
    let mut draft = Draft::of(document)?;
    let root = root(&mut draft)?;
    let added = json!({
        "id": claim.id, "profile": claim.profile, "from_host": claim.from_host, "to_host": claim.to_host,
        "started_at": claim.started_at,
    });
    root.insert(TRANSACTIONS.to_owned(), json!([added]));
    Ok(draft.finish())
}

/// Takes a claim away; an emptied list takes its key with it. A claim that is not there is no change.
///
/// # Errors
/// A document that holds a key twice.
pub fn release(document: &Document, id: &str) -> Result<Edited, EditError> {
    let mut draft = Draft::of(document)?;
    take_away(&mut draft, id)?;
    Ok(draft.finish())
}

fn take_away(draft: &mut Draft<'_>, id: &str) -> Result<(), EditError> {
    let root = root(draft)?;
    let Some(list) = root.get_mut(TRANSACTIONS).and_then(Value::as_array_mut) else { return Ok(()) };
    let before = list.len();
    list.retain(|one| one.get("id").and_then(Value::as_str) != Some(id));
    if list.is_empty() && before > 0 {
        root.shift_remove(TRANSACTIONS);
    }
    Ok(())
}

fn root<'d>(draft: &'d mut Draft<'_>) -> Result<&'d mut Map<String, Value>, EditError> {
    draft.value.as_object_mut().ok_or_else(|| EditError::config("registry: must be an object"))
}

/// The end of a move, in one document: units, active hosts, addresses, one generation of the directory, and no claim any
/// more. `now` (RFC 3339) is since when the destination manages the units.
///
/// # Errors
/// The claim is not there, its profile is not, or a service has no address on the destination.
pub fn commit_move(document: &Document, id: &str, now: &str) -> Result<Edited, EditError> {
    let claim = claims(document).into_iter().find(|claim| claim.id == id);
    let claim =
        claim.ok_or_else(|| EditError::refused(format!("the placement transaction {id} is not active any more")))?;
    let profiles = document.section(PROFILES).and_then(Value::as_array);
    let named = |p: &&Value| p.get("name").and_then(Value::as_str) == Some(claim.profile.as_str());
    let profile = profiles.into_iter().flatten().find(named).cloned();
    let profile = profile
        .ok_or_else(|| EditError::not_found(format!("placement profile \"{}\" is not declared", claim.profile)))?;
    let services: Vec<&str> =
        profile.get("services").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut draft = Draft::of(document)?;
    take_away(&mut draft, id)?;
    for service in services {
        let unit = |host: &str| {
            let unit = profile.get("hosts").and_then(|h| h.get(host)?.get("units")?.get(service));
            unit.cloned().unwrap_or_default()
        };
        move_unit(&mut draft, &claim, &unit(&claim.from_host), &unit(&claim.to_host), now)?;
        move_route(&mut draft, service, &claim)?;
    }
    draft.finish_directory()
}

/// The unit leaves the source's list and enters the destination's: the active host is the one that declares it.
fn move_unit(draft: &mut Draft<'_>, claim: &Claim, from: &Value, to: &Value, now: &str) -> Result<(), EditError> {
    // What a release controller runs is in no list.
    if from.get("controller").is_none() {
        let names = names(from);
        let list = units(draft, &claim.from_host)?;
        list.retain(|unit| !["name", "label", "unit"].iter().any(|key| names.contains(&text(unit, key))));
    }
    if to.get("controller").is_some() {
        return Ok(());
    }
    let kind = text(to, "kind");
    let (label, unit) = if kind == "launchd" { (text(to, "unit"), "") } else { ("", text(to, "unit")) };
    let mut entry = Map::new();
    let parts =
        [("name", text(to, "name")), ("kind", kind), ("label", label), ("unit", unit), ("path", text(to, "path"))];
    for (key, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        entry.insert(key.to_owned(), value.into());
    }
    entry.insert("managed_since".to_owned(), now.into());
    let wanted = names(to);
    let list = units(draft, &claim.to_host)?;
    let declared = |unit: &Value| ["name", "label", "unit"].iter().any(|key| wanted.contains(&text(unit, key)));
    if !list.iter().any(declared) {
        list.push(Value::Object(entry));
    }
    Ok(())
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// By which a unit of a profile is found among a target's.
fn names(unit: &Value) -> Vec<&str> {
    [text(unit, "name"), text(unit, "unit")].into_iter().filter(|name| !name.is_empty()).collect()
}

fn units<'d>(draft: &'d mut Draft<'_>, host: &str) -> Result<&'d mut Vec<Value>, EditError> {
    let list = draft.target(host)?.entry("services").or_insert_with(|| json!([])).as_array_mut();
    list.ok_or_else(|| EditError::config(format!("registry.targets[{host}].services: must be an array")))
}

/// The destination's standby address becomes an endpoint, the source's endpoint a standby address. A service that the
/// directory does not have has no route to move.
fn move_route(draft: &mut Draft<'_>, service: &str, claim: &Claim) -> Result<(), EditError> {
    let Ok(entry) = draft.service(service) else { return Ok(()) };
    let mut take = |key: &str, host: &str| entry.get_mut(key)?.as_object_mut()?.shift_remove(host);
    let (arriving, leaving) = (take("standby", &claim.to_host), take("endpoints", &claim.from_host));
    let mut put = |key: &str, host: &str, address: Option<Value>| {
        let Some(address) = address else { return };
        if let Some(map) = entry.entry(key).or_insert_with(|| json!({})).as_object_mut() {
            map.entry(host).or_insert(address);
        }
    };
    put("endpoints", &claim.to_host, arriving);
    put("standby", &claim.from_host, leaving);
    if entry.get("endpoints").and_then(|e| e.get(&claim.to_host)).is_none() {
        return Err(EditError::not_found(format!(
            "service_directory declares no endpoint for {service} on {}; name its address there under standby",
            claim.to_host
        )));
    }
    entry.insert("active_host".into(), claim.to_host.as_str().into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::example;
    use crate::name::Generation;
    use crate::validate::validate;

    fn gateway() -> Claim {
        Claim {
            id: "67e55044-10b1-426f-9247-bb680e5fe0c8".into(),
            profile: "gateway".into(),
            from_host: "control-host".into(),
            to_host: "gpu-box".into(),
            started_at: "2026-08-20T10:00:00Z".into(),
        }
    }

    #[test]
    fn a_claim_is_one_more_key_a_second_is_refused_and_its_release_takes_the_key_away() {
        let mut value = example("typical").value().clone();
        value.as_object_mut().unwrap().shift_remove(TRANSACTIONS);
        let before = Document::from_value(value);
        let claimed = claim(&before, &gateway()).unwrap();
        assert_eq!(claims(&claimed.document), [gateway()]);
        assert_eq!(claimed.generation, before.generation(), "the directory is as it was");
        validate(claimed.document.clone()).unwrap();
        let other = Claim { id: "d9428888-122b-11e1-b85c-61cd3cbb3210".into(), ..gateway() };
        assert_eq!(
            claim(&claimed.document, &other).unwrap_err().to_string(),
            "another placement transaction is active: 67e55044-10b1-426f-9247-bb680e5fe0c8"
        );
        assert!(!release(&claimed.document, &other.id).unwrap().changed);
        let released = release(&claimed.document, &gateway().id).unwrap();
        assert!(released.document.same_as(&before));
    }

    #[test]
    fn the_commit_moves_units_addresses_and_active_hosts_under_one_generation_and_back_again() {
        let before = example("typical");
        let claimed = claim(&before, &gateway()).unwrap().document;
        let moved = commit_move(&claimed, &gateway().id, "2026-08-20T10:00:09Z").unwrap();
        let Generation(held) = before.generation().unwrap();
        assert_eq!(moved.generation, Some(Generation(held + 1)), "once for both services");
        assert!(claims(&moved.document).is_empty() && moved.document.section(TRANSACTIONS).is_none());
        let valid = validate(moved.document.clone()).unwrap();
        let directory = valid.registry.directory.as_ref().unwrap();
        for service in ["brama", "skarbiec"] {
            let service = &directory.services[service];
            assert_eq!(service.active_host.as_str(), "gpu-box");
            assert_eq!(service.endpoints.keys().map(|h| h.as_str()).collect::<Vec<_>>(), ["gpu-box"]);
        }
        let value = moved.document.value();
        let names = |target: usize| -> Vec<&str> {
            value["targets"][target]["services"]
                .as_array()
                .unwrap()
                .iter()
                .map(|u| u["name"].as_str().unwrap())
                .collect()
        };
        assert_eq!((names(0), names(1)), (vec!["stado-object-api"], vec!["orders", "brama", "skarbiec"]));
        assert_eq!(value["targets"][1]["services"][1]["unit"], "brama.service");
        assert_eq!(
            value["service_directory"]["services"]["brama"]["standby"]["control-host"]["url"],
            "http://127.0.0.1:8080"
        );

        let back = Claim { from_host: "gpu-box".into(), to_host: "control-host".into(), ..gateway() };
        let claimed = claim(&moved.document, &back).unwrap().document;
        let home = commit_move(&claimed, &back.id, "2026-08-21T10:00:00Z").unwrap();
        validate(home.document.clone()).unwrap();
        assert_eq!(home.document.value()["targets"][0]["services"][1]["label"], "com.example.brama");
        assert_eq!(
            home.document.section("service_directory").unwrap()["services"],
            example("typical").value()["service_directory"]["services"]
        );
    }

    #[test]
    fn a_commit_without_its_claim_or_an_address_changes_nothing() {
        let gone = commit_move(&example("typical"), "x", "2026-08-20T10:00:09Z").unwrap_err();
        assert_eq!(gone.to_string(), "the placement transaction x is not active any more");
        let claimed = claim(&example("typical"), &gateway()).unwrap().document;
        let mut value = claimed.value().clone();
        value["service_directory"]["services"]["brama"]["standby"] = json!({});
        let refused = commit_move(&Document::from_value(value), &gateway().id, "2026-08-20T10:00:09Z").unwrap_err();
        assert!(
            refused.to_string().starts_with("service_directory declares no endpoint for brama on gpu-box"),
            "{refused}"
        );
    }
}
