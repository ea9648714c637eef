//! `registry host path …`: the declared ways to a host (fleet contract §6.7).
use crate::args::{HostArgs, PathRemoveArgs, PathSetArgs};
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit::{self, NewWay};

/// `registry host path list`.
pub(crate) async fn path_list(args: HostArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let ways = edit::ways(&answer.snapshot.valid.document, &args.host)?;
    if args.json {
        let paths: Vec<_> = ways.iter().map(|(name, to)| json!({"path": name, "destination": to})).collect();
        ui::json(&json!({"target": args.host, "paths": paths}))?;
    } else {
        let lines: String = ways.iter().map(|(name, destination)| format!("{name}\t{destination}\n")).collect();
        ui::print(&lines)?;
    }
    Ok(Outcome::Done)
}

/// `registry host path set`.
pub(crate) async fn path_set(args: PathSetArgs, env: &Env) -> Verb {
    let PathSetArgs { host, path, ssh, priority, json } = args;
    let way = NewWay { path, ssh, priority };
    let fleet = Fleet::open(env)?;
    let written = write::retried(&fleet, |held, _| edit::set_way(held, &host, &way), |set| &set.edited).await?;
    let generation = written.committed.map(|committed| committed.version);
    if json {
        ui::json(&json!({
            "target": host, "path": way.path, "destination": way.ssh, "changed": generation.is_some(),
            "generation": generation.as_ref().unwrap_or(&written.read),
        }))?;
    } else if let Some(generation) = generation {
        ui::line(format_args!("set {host} connection path {} -> {}; generation={generation}", way.path, way.ssh))?;
    } else {
        ui::line(format_args!("{host}: {} already points to {}", way.path, way.ssh))?;
    }
    Ok(Outcome::Done)
}

/// `registry host path remove`.
pub(crate) async fn path_remove(args: PathRemoveArgs, env: &Env) -> Verb {
    let PathRemoveArgs { host, path, json } = args;
    let fleet = Fleet::open(env)?;
    let written = write::retried(&fleet, |held, _| edit::remove_way(held, &host, &path), |edited| edited).await?;
    let generation = written.committed.map_or(written.read, |committed| committed.version);
    if json {
        ui::json(&json!({"target": host, "removed": path, "generation": generation}))?;
    } else {
        ui::line(format_args!("removed {host} connection path {path}; generation={generation}"))?;
    }
    Ok(Outcome::Done)
}
