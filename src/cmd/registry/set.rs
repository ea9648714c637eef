use crate::args::SetArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::document::Document;
use stado_fleet::edit;
use stado_fleet::fault::{Blame, Class};
use std::cell::OnceCell;

/// `registry set`: one field, on the version that was read.
pub(crate) async fn set(args: SetArgs, env: &Env) -> Verb {
    let value = edit::parse_value(&args.value)?;
    let fleet = Fleet::open(env)?;
    let location = fleet.source().await?.location();
    // Made again when another writer was first, as long as it left this field as it was: then it still means the same.
    let first: OnceCell<Option<Value>> = OnceCell::new();
    let set = |held: &Document, _: &str| {
        let set = edit::set_path(held, &args.path, value.clone())?;
        if first.get_or_init(|| set.previous.clone()) != &set.previous {
            return Err(moved_under(&args.path, set.previous.as_ref()));
        }
        Ok(set)
    };
    let written = write::retried(&fleet, set, |set| &set.edited).await?;
    let generation = written.committed.as_ref().map(|c| c.version.as_str());
    if args.json {
        ui::json(&json!({
            "schema": "stado.registry-set-receipt.v1",
            "state": if generation.is_some() { "set" } else { "unchanged" },
            "location": location,
            "path": args.path,
            "previous": written.done.previous,
            "value": value,
            "read_generation": written.read,
            "generation": generation,
        }))?;
    } else if let Some(generation) = generation {
        let was = written.done.previous.as_ref().map_or("absent".to_owned(), plain);
        ui::line(format_args!("set {} -> {location} generation={generation}; was {was}", args.path))?;
    } else {
        ui::line(format_args!("{} already holds {}; nothing written", args.path, plain(&value)))?;
    }
    Ok(Outcome::Done)
}

/// Exit 75: the registry moved, and with it what this edit was about.
fn moved_under(path: &str, now: Option<&Value>) -> Failure {
    let now = now.map_or("absent".to_owned(), plain);
    Failure::new(
        Class::Moved,
        Blame::Caller,
        format!(
            "registry write refused: another writer changed {path} meanwhile, which is {now} now; nothing was written"
        ),
    )
}

/// A text bare, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
