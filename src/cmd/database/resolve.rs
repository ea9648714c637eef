use super::{find, placed, uri};
use crate::args::DatabaseResolveArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::provenance::provenance;
use crate::config::{Databases, Env};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority::Answer;

/// `database resolve`: refused before any registry is read, when the consumer may not.
pub(crate) async fn resolve(args: DatabaseResolveArgs, env: &Env) -> Verb {
    let databases = Databases::read(env)?;
    let database = find(&databases, &args.name)?;
    if !database.admits(&args.consumer) {
        return Err(Failure::usage(format!(
            "consumer \"{}\" is not authorized for database \"{}\"",
            args.consumer, database.name
        )));
    }
    let fleet = Fleet::open(env)?;
    let answer = placed::registry(&fleet).await?;
    let mut body = json!({
        "database": uri(database.name.as_str()), "engine": database.engine.word(), "scopes": database.scope_words(),
        "credential_item": database.item(), "placed": false,
    });
    let at = answer.as_ref().map(|answer| place(&fleet, answer, database, &args.consumer)).transpose()?.flatten();
    let is_placed = at.is_some();
    if let (Some(body), Some(at)) = (body.as_object_mut(), at) {
        body.insert("placed".to_owned(), true.into());
        body.extend(at);
    }
    if args.json {
        ui::json(&body)?;
    } else {
        ui::line(format_args!(
            "{} engine={} item={} scopes={} placed={is_placed}",
            uri(database.name.as_str()),
            database.engine.word(),
            database.item(),
            database.scope_words().join(",")
        ))?;
    }
    Ok(Outcome::Done)
}

/// What the directory adds; `None` when it has no entry of that name. `address` is an addition of ours.
fn place(
    fleet: &Fleet,
    answer: &Answer,
    database: &crate::config::Database,
    consumer: &str,
) -> Result<Option<serde_json::Map<String, serde_json::Value>>, Failure> {
    let registry = &answer.snapshot.valid.registry;
    let Some(service) = placed::entry(registry, &database.name) else { return Ok(None) };
    let address = placed::address(fleet, registry, (&database.name, service), consumer)?;
    let capabilities = service.consumers.iter().find(|(id, _)| id.as_str() == consumer).map(|(_, all)| all);
    let at = json!({
        "generation": registry.directory.as_ref().map(|directory| directory.generation.0),
        "active_host": service.active_host,
        "endpoint": service.endpoints.get(&service.active_host).map(ToString::to_string),
        "capabilities": capabilities.cloned().unwrap_or_default(),
        "address": address, "registry": provenance(answer),
    });
    Ok(at.as_object().cloned())
}
