use crate::args::PullArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::Value;
use stado_fleet::authority::{self, PullReceipt, RemoteAuthority, Source};
use stado_fleet::edit;
use stado_fleet::link::single_path;
use stado_fleet::name::{SshDestination, TargetName};
use std::path::Path;

/// `registry pull`: the stored document, its version, or a part of it; with `--from` the first copy on a new host.
pub(crate) async fn pull(args: PullArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    if let (Some(from), Some(command)) = (&args.from, &args.command) {
        return first_copy(&fleet, from, command).await;
    }
    let source = fleet.source().await?;
    let location = source.location();
    let read = authority::fetch_raw(&source, &fleet.link).await?;
    let (document, version) = read.ok_or_else(|| Failure::not_found(format!("no registry document at {location}")))?;
    if args.generation_only {
        ui::line(&version)?;
    } else if args.with_generation {
        let receipt = PullReceipt::new(&location, &version, &document);
        ui::json(&serde_json::to_value(&receipt).map_err(|e| Failure::here(e.to_string()))?)?;
    } else if let Some(asked) = &args.path {
        match edit::read_path(&document, asked)? {
            Value::String(text) => ui::line(text)?,
            value => ui::json(value)?,
        }
    } else {
        ui::json(document.value())?;
    }
    Ok(Outcome::Done)
}

/// Reads the registry from a host that a person named, and keeps it as this host's copy.
async fn first_copy(fleet: &Fleet, from: &str, command: &str) -> Verb {
    let destination: SshDestination =
        from.parse().map_err(|e| Failure::usage(format!("--from {from:?} {e}: write it as [user@]host[:port]")))?;
    if !Path::new(command).is_absolute() || command.split('/').any(|part| part == "..") {
        return Err(Failure::usage(format!("--command {command:?} must be an absolute path without '..'")));
    }
    let source = Source::Remote(RemoteAuthority {
        target: as_target(&destination.host)?,
        command: command.to_owned(),
        paths: single_path(destination),
        shared: None,
        epoch: 0,
        standbys: Vec::new(),
    });
    let snapshot = authority::fetch(&source, &fleet.link).await?;
    let snapshot = snapshot.ok_or_else(|| Failure::not_found(format!("{from} has no registry document")))?;
    fleet.last_good.seed(&snapshot, jiff::Timestamp::now()).map_err(|e| Failure::here(e.sentence))?;
    let registry = &snapshot.valid.registry;
    let generation = registry.directory.as_ref().map(|d| format!(", directory generation {}", d.generation));
    ui::line(format_args!(
        "kept the registry of {from} in {} (generation={}, {} targets{})",
        fleet.last_good.path().display(),
        snapshot.store_version,
        registry.targets.len(),
        generation.unwrap_or_default()
    ))?;
    match fleet.me(registry)? {
        Some(me) if registry.targets.contains_key(&me) => {
            ui::note(format_args!("this host is {me}; `stado resolver serve` serves its routes"));
        }
        _ => ui::note(format_args!(
            "this host ({}) is no target of it: declare it with `stado registry host add`, or name it with STADO_TARGET or \
             \"target\" in {}",
            fleet.host.hostname,
            fleet.host.stado_home.join("config.json").display()
        )),
    }
    Ok(Outcome::Done)
}

/// A name for a host that no registry has named yet: its host part, where that is a name at all.
fn as_target(host: &str) -> Result<TargetName, Failure> {
    let parsed = host.to_lowercase().parse().or_else(|_| "authority".parse());
    parsed.map_err(|e: stado_fleet::name::NameError| Failure::usage(e.0))
}
