//! `vault list`.
use super::{dir, open};
use crate::args::VaultList;
use crate::cmd::{Wanted, unless_stopped};
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::vault::Contents;
use std::path::Path;

/// `vault list`: names, never values.
pub(crate) async fn list(args: VaultList, env: &Env) -> Verb {
    let dir = dir(&args.place, env)?;
    unless_stopped(move |wanted| list_in(&dir, args, wanted)).await
}

fn list_in(dir: &Path, args: VaultList, wanted: &Wanted) -> Verb {
    let vault = open(dir, wanted)?;
    let contents = vault.contents()?;
    if args.json {
        ui::json(&document(&contents, args.removed))?;
        return Ok(Outcome::Done);
    }
    for (id, item) in contents.items.iter().filter(|(_, item)| args.removed || !item.deleted) {
        let fields = item.fields.keys().map(String::as_str).collect::<Vec<_>>().join(",");
        let kind = if item.kind.is_empty() { "-" } else { &item.kind };
        let state = if item.deleted { "removed" } else { fields.as_str() };
        ui::line(format_args!("item {id} {state} type={kind} versions={} updated={}", item.versions, item.updated_at))?;
    }
    for (consumer, grant) in &contents.grants {
        let items = grant.items.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        ui::line(format_args!("grant {consumer} {items} updated={}", grant.updated_at))?;
    }
    Ok(Outcome::Done)
}

fn document(contents: &Contents, removed: bool) -> Value {
    let shown = contents.items.iter().filter(|(_, item)| removed || !item.deleted);
    let items = shown.map(|(id, item)| {
        let facts = item.facts(id);
        let fields: Vec<&String> = item.fields.keys().collect();
        json!({
            "id": facts.id, "type": facts.kind, "tags": facts.tags, "updated_at": facts.updated_at,
            "deleted": facts.deleted, "versions": facts.versions, "fields": fields,
        })
    });
    let grants = contents
        .grants
        .iter()
        .map(|(consumer, grant)| json!({"consumer": consumer, "items": grant.items, "updated_at": grant.updated_at}));
    json!({"items": items.collect::<Vec<_>>(), "grants": grants.collect::<Vec<_>>()})
}
