use super::versions::Versions;
use crate::args::RollbackArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority;
use stado_fleet::edit::{self, Overrides, check_write, guard_push};

/// `registry rollback`: the content of an earlier version, under a new generation. Never made again when another writer was
/// first: what is put back would be put over a change that nobody looked at.
pub(crate) async fn rollback(args: RollbackArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let versions = Versions::read(&fleet, true).await?;
    let from = versions.find(args.version.as_deref())?;
    let old = versions.content(&fleet, &from).await?;
    let restored = edit::restore(&versions.held, &old)?;
    if !restored.changed {
        ui::note(format_args!("generation {from} says what is stored now; nothing written"));
        if args.json {
            ui::json(&json!({"state": "unchanged", "restored": from, "generation": null, "replaced": versions.now}))?;
        }
        return Ok(Outcome::Done);
    }
    // Deleting what came since is what a rollback is for; erasing every host never is by accident.
    let overrides = Overrides { force: true, allow_empty_fleet: args.allow_empty_fleet };
    guard_push(Some((&versions.held, &versions.now)), &restored.document, overrides)?;
    if let Some(line) = check_write(Some(&versions.held), &restored.document)
        .map_err(|e| Failure::refused(format!("generation {from} cannot be put back: {e}")))?
    {
        ui::note(line);
    }
    let committed = authority::commit(&versions.source, &fleet.link, Some(&versions.now), &restored.document).await?;
    let directory = restored.generation.map(|g| g.0);
    if args.json {
        ui::json(&json!({
            "state": "rolled-back", "location": committed.location, "restored": from, "generation": committed.version,
            "replaced": versions.now, "directory_generation": directory,
        }))?;
    } else {
        let directory = directory.map(|g| format!(" directory={g}")).unwrap_or_default();
        ui::line(format_args!(
            "restored {from} -> {} generation={} replaced={}{directory}",
            committed.location, committed.version, versions.now
        ))?;
    }
    Ok(Outcome::Done)
}
