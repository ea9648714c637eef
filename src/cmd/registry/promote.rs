use crate::args::PromoteArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::json;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{self, PromoteRequest, Promoted};
use stado_fleet::validate::validate;
use std::sync::Arc;

/// `registry promote`: this host becomes the authority.
pub(crate) async fn promote(args: PromoteArgs, env: &Env) -> Verb {
    let command = match args.command {
        Some(command) => command,
        None => own_path()?,
    };
    if !command.starts_with('/') || command.split('/').any(|part| part == "..") {
        return Err(Failure::usage(format!("--command {command:?} must be an absolute path without '..'")));
    }
    let fleet = Fleet::open(env)?;
    let source = fleet.source().await?;
    let copy = fleet.copy();
    let known = copy.as_ref().map(|copy| fleet.me(&copy.snapshot.valid.registry)).transpose()?.flatten();
    let me = known.or_else(|| fleet.host.target.clone()).ok_or_else(|| {
        Failure::config(format!(
            "host {} is no target of this host's copy of the registry, so it cannot be its authority: declare it with `stado \
             registry host add` while the authority answers, or name it with STADO_TARGET",
            fleet.host.hostname
        ))
    })?;
    let request = PromoteRequest { me, command, from_copy: args.from_copy };
    let now = Timestamp::now();
    let promoted = authority::promote(&source, &fleet.store, copy.as_ref(), &fleet.link, &request, now).await?;
    record(&fleet, &promoted, now);
    print(&fleet, &request, &promoted, args.json)?;
    Ok(Outcome::Done)
}

/// The path by which others are to run this program.
fn own_path() -> Result<String, Failure> {
    let path = std::env::current_exe().map_err(|e| Failure::here(format!("this program's path is not known: {e}")))?;
    let path = path.into_os_string().into_string();
    path.map_err(|path| Failure::here(format!("this program's path {path:?} is not text; name one with --command")))
}

/// The copy names this host now. That it cannot be written changes nothing: the store counts.
fn record(fleet: &Fleet, promoted: &Promoted, now: Timestamp) {
    let Ok(valid) = validate(promoted.document.clone()) else { return };
    let snapshot = Snapshot { valid: Arc::new(valid), store_version: promoted.version.clone() };
    if let Err(e) = fleet.last_good.record(&snapshot, now) {
        ui::note(e.sentence);
    }
}

fn print(fleet: &Fleet, request: &PromoteRequest, promoted: &Promoted, as_json: bool) -> Result<(), Failure> {
    let Promoted { document, version, already, before } = promoted;
    let (epoch, directory) = (document.epoch(), document.generation().map(|g| g.0));
    let location = fleet.store.location();
    if as_json {
        let told = before
            .as_ref()
            .map(|(target, told)| json!({"target": target, "told": told.is_ok(), "detail": told.as_ref().err()}));
        return ui::json(&json!({
            "state": if *already { "already" } else { "promoted" }, "target": request.me, "epoch": epoch,
            "directory_generation": directory, "location": location, "generation": version, "before": told,
        }));
    }
    if *already {
        return ui::line(format_args!("{} is the authority already (authority epoch {epoch})", request.me));
    }
    let directory = directory.map(|g| format!(" directory={g}")).unwrap_or_default();
    ui::line(format_args!(
        "{} is the authority -> {location} generation={version} epoch={epoch}{directory}",
        request.me
    ))?;
    match before {
        Some((target, Ok(()))) => ui::note(format_args!("{target} follows it from now on")),
        Some((target, Err(why))) => ui::note(format_args!(
            "{target} was not told ({why}); it is told when it is back, by the resolver of this host or by its own. What was \
             written there after this host's copy was read is not in the registry; it is in that host's history"
        )),
        None => {}
    }
    Ok(())
}
