use super::{placed, uri};
use crate::args::JsonArgs;
use crate::cmd::fleet::Fleet;
use crate::config::{Database, Databases, Env};
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::document::Registry;

/// `database list`. A registry that cannot be read leaves open where they are placed; the declarations are told all the same.
pub(crate) async fn list(args: JsonArgs, env: &Env) -> Verb {
    let databases = Databases::read(env)?;
    let answer = match Fleet::open(env) {
        Ok(fleet) if !databases.all.is_empty() => match placed::registry(&fleet).await {
            Ok(answer) => Some(answer),
            Err(failure) => {
                ui::note(format_args!("where they are placed is not known: {}", failure.message));
                None
            }
        },
        Ok(_) => Some(None),
        Err(failure) => {
            ui::note(format_args!("where they are placed is not known: {}", failure.message));
            None
        }
    };
    // The outer `None`: not known. The inner one: there is no registry.
    let registry = answer.as_ref().map(|answer| answer.as_ref().map(|answer| &*answer.snapshot.valid.registry));
    if args.json {
        let rows: Vec<Value> = databases.all.iter().map(|database| row(database, registry)).collect();
        ui::json(&json!({"config": databases.file, "databases": rows}))?;
    } else {
        ui::print(&databases.all.iter().map(|database| text(database, registry)).collect::<String>())?;
    }
    Ok(Outcome::Done)
}

/// The host that a database is placed on: `None` when that is not known, `Some(None)` when it is on none.
fn host(database: &Database, registry: Option<Option<&Registry>>) -> Option<Option<String>> {
    let entry = registry?.and_then(|registry| placed::entry(registry, &database.name));
    Some(entry.map(|entry| entry.active_host.to_string()))
}

fn row(database: &Database, registry: Option<Option<&Registry>>) -> Value {
    let host = host(database, registry);
    json!({
        "database": uri(database.name.as_str()), "engine": database.engine.word(), "scopes": database.scope_words(),
        "credential_item": database.item(), "consumers": database.consumers,
        "placed": host.as_ref().map(Option::is_some), "active_host": host.flatten(),
    })
}

fn text(database: &Database, registry: Option<Option<&Registry>>) -> String {
    let placed = match host(database, registry) {
        None => "unknown".to_owned(),
        Some(None) => "false".to_owned(),
        Some(Some(host)) => format!("true host={host}"),
    };
    let consumers = ui::clean::line(&database.consumers.join(","));
    format!(
        "{} engine={} item={} scopes={} consumers={consumers} placed={placed}\n",
        database.name,
        database.engine.word(),
        database.item(),
        database.scope_words().join(",")
    )
}
