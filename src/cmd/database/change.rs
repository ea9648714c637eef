//! The verbs that change the declarations. Each reads and writes under one lock.
use super::{PREFIX, unknown, uri};
use crate::args::{DatabaseArgs, DatabaseDeclareArgs, DatabaseGrantArgs, EngineName, ScopeName};
use crate::config::{Database, Engine, Env, Scope, database, edit_databases};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::{Map, Value, json};
use stado_fleet::name::{ConsumerId, LogicalName};
use std::path::PathBuf;

/// What a change did.
struct Done {
    after: Database,
    changed: bool,
    file: PathBuf,
}

/// `database declare`. Declaring again changes scopes and adds consumers; an engine is never changed under a name.
pub(crate) async fn declare(args: DatabaseDeclareArgs, env: &Env) -> Verb {
    let text = bare(&args.name);
    let name: LogicalName = text.parse().map_err(|e| Failure::usage(format!("NAME is {text:?}: it {e}")))?;
    args.consumers.iter().try_for_each(|consumer| sound(consumer))?;
    let (engine, scopes) = (engine(args.engine), scopes(&args.scopes));
    let done = change(env, name.as_str(), |held, _| {
        if let Some(held) = held.as_ref().filter(|held| held.engine != engine) {
            let (now, wanted) = (held.engine.word(), engine.word());
            return Err(Failure::refused(format!(
                "database \"{name}\" is declared as {now}; to declare it as {wanted}, remove it first with `stado database \
                 remove {name}`"
            )));
        }
        let mut consumers = held.map(|held| held.consumers).unwrap_or_default();
        args.consumers.iter().for_each(|consumer| add(&mut consumers, consumer));
        Ok(Database { name: name.clone(), engine, scopes, consumers })
    })?;
    print(args.json, &done, "declared", None)
}

/// `database remove`.
pub(crate) async fn remove(args: DatabaseArgs, env: &Env) -> Verb {
    let name = bare(&args.name);
    let ((), file) = edit_databases(env, |all| match all.shift_remove(name) {
        Some(_) => Ok(((), true)),
        None => Err(unknown(name, &names(all))),
    })?;
    if args.json {
        ui::json(&json!({"database": uri(name), "state": "removed", "config": file}))?;
    } else {
        ui::line(format_args!("removed {name} from {}; the database itself is as it was", file.display()))?;
    }
    Ok(Outcome::Done)
}

/// `database grant`.
pub(crate) async fn grant(args: DatabaseGrantArgs, env: &Env) -> Verb {
    sound(&args.consumer)?;
    let name = bare(&args.name);
    let done = change(env, name, |held, declared| {
        let mut next = held.ok_or_else(|| unknown(name, declared))?;
        add(&mut next.consumers, &args.consumer);
        Ok(next)
    })?;
    print(args.json, &done, "granted", Some(&args.consumer))
}

/// `database revoke`.
pub(crate) async fn revoke(args: DatabaseGrantArgs, env: &Env) -> Verb {
    let name = bare(&args.name);
    let done = change(env, name, |held, declared| {
        let mut next = held.ok_or_else(|| unknown(name, declared))?;
        if !next.admits(&args.consumer) {
            let all = if next.consumers.is_empty() { "none".to_owned() } else { next.consumers.join(", ") };
            return Err(Failure::not_found(format!(
                "\"{name}\" does not declare \"{}\"; it declares {all}",
                args.consumer
            )));
        }
        next.consumers.retain(|consumer| *consumer != args.consumer);
        Ok(next)
    })?;
    print(args.json, &done, "revoked", Some(&args.consumer))
}

/// Changes one declaration: `edit` is given what is declared, and every declared name for its refusals.
fn change(
    env: &Env,
    name: &str,
    edit: impl FnOnce(Option<Database>, &str) -> Result<Database, Failure>,
) -> Result<Done, Failure> {
    let ((after, changed), file) = edit_databases(env, |all| {
        let names = names(all);
        let held = all.get(name).map(|entry| database(name, entry, "database_api.databases")).transpose()?;
        let after = edit(held.clone(), &names)?;
        let changed = held.as_ref() != Some(&after);
        if changed {
            let entry = all.entry(name).or_insert_with(|| json!({}));
            if let Value::Object(entry) = entry {
                after.write_into(entry);
            }
        }
        Ok::<_, Failure>(((after, changed), changed))
    })?;
    Ok(Done { after, changed, file })
}

fn names(all: &Map<String, Value>) -> String {
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn bare(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn sound(consumer: &str) -> Result<(), Failure> {
    consumer.parse::<ConsumerId>().map(|_| ()).map_err(|e| Failure::usage(e.to_string()))
}

fn add(consumers: &mut Vec<String>, consumer: &str) {
    if !consumers.iter().any(|known| known == consumer) {
        consumers.push(consumer.to_owned());
    }
}

fn engine(name: EngineName) -> Engine {
    match name {
        EngineName::Postgres => Engine::Postgres,
        EngineName::Sqlite => Engine::Sqlite,
    }
}

/// Each once, in the order of the contract.
fn scopes(names: &[ScopeName]) -> Vec<Scope> {
    let all = [(ScopeName::Read, Scope::Read), (ScopeName::Write, Scope::Write)];
    all.into_iter().filter(|(name, _)| names.contains(name)).map(|(_, scope)| scope).collect()
}

fn print(json: bool, done: &Done, word: &str, consumer: Option<&str>) -> Verb {
    let Done { after, changed, file } = done;
    let state = if *changed { word } else { "unchanged" };
    let consumers = after.consumers.join(",");
    if json {
        let mut body = json!({
            "database": uri(after.name.as_str()), "state": state, "engine": after.engine.word(),
            "scopes": after.scope_words(), "credential_item": after.item(), "consumers": after.consumers, "config": file,
        });
        if let (Some(body), Some(consumer)) = (body.as_object_mut(), consumer) {
            body.insert("consumer".to_owned(), consumer.into());
        }
        ui::json(&body)?;
        return Ok(Outcome::Done);
    }
    let (name, file) = (&after.name, file.display());
    let line = match (consumer, *changed, word) {
        (_, false, _) => format!("{name} is declared so already; nothing written (consumers={consumers})"),
        (Some(consumer), _, "granted") => format!("granted {consumer} {name} in {file} (consumers={consumers})"),
        (Some(consumer), ..) => format!("revoked {name} from {consumer} in {file} (consumers={consumers})"),
        (None, ..) => format!(
            "declared {name} engine={} item={} scopes={} consumers={consumers} in {file}",
            after.engine.word(),
            after.item(),
            after.scope_words().join(",")
        ),
    };
    ui::line(ui::clean::line(&line))?;
    Ok(Outcome::Done)
}
