//! `registry host …`: declared hosts.
use crate::args::{HostAddArgs, HostArgs};
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::edit::{self, NewHost};

/// `registry host add`.
pub(crate) async fn host_add(args: HostAddArgs, env: &Env) -> Verb {
    let HostAddArgs { host, ssh, release_platform, kind, json } = args;
    let new = NewHost { name: host, kind, ssh, release_platform };
    let fleet = Fleet::open(env)?;
    let written =
        write::retried(&fleet, |held, location| edit::add_host(held, location, &new), |edited| edited).await?;
    let Some(committed) = written.committed else { return Ok(Outcome::Done) };
    if json {
        ui::json(&json!({
            "target": new.name, "kind": new.kind, "release_platform": new.release_platform, "ssh": new.ssh,
            "location": committed.location, "generation": committed.version,
        }))?;
    } else {
        ui::line(format_args!(
            "added {} (kind={}, release_platform={}, ssh={}) -> {} generation={}",
            new.name, new.kind, new.release_platform, new.ssh, committed.location, committed.version
        ))?;
    }
    Ok(Outcome::Done)
}

/// `registry host show`: the entry as it is declared, and who the host is here.
pub(crate) async fn host_show(args: HostArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let document = &answer.snapshot.valid.document;
    let targets = document.section("targets").and_then(Value::as_array).into_iter().flatten();
    let named = |target: &&Value| target.get("name").and_then(Value::as_str) == Some(args.host.as_str());
    let target = targets
        .clone()
        .find(named)
        .ok_or_else(|| Failure::not_found(format!("target '{}' is not in the canonical registry", args.host)))?;
    if args.json {
        ui::json(target)?;
        return Ok(Outcome::Done);
    }
    let text = |key: &str| target.get(key).and_then(Value::as_str).unwrap_or("-");
    let mut lines = format!("{}  kind={} release_platform={}\n", args.host, text("kind"), text("release_platform"));
    for (path, destination) in edit::ways(document, &args.host)? {
        lines.push_str(&format!("    path {path}: {destination}\n"));
    }
    for adapter in target.pointer("/service_resolver/adapters").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| adapter.get(key).and_then(Value::as_str);
        let bind = text("bind").unwrap_or("a port that the host hands out");
        let (service, consumer) = (text("service").unwrap_or("-"), text("consumer").unwrap_or("-"));
        lines.push_str(&format!("    adapter {service} consumer={consumer} {bind}\n"));
    }
    ui::print(&lines)?;
    Ok(Outcome::Done)
}

/// `registry host remove`.
pub(crate) async fn host_remove(args: HostArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let written = write::retried(&fleet, |held, _| edit::remove_host(held, &args.host), |edited| edited).await?;
    let Some(committed) = written.committed else { return Ok(Outcome::Done) };
    if args.json {
        ui::json(&json!({"removed": args.host, "location": committed.location, "generation": committed.version}))?;
    } else {
        ui::line(format_args!("removed {} -> {} generation={}", args.host, committed.location, committed.version))?;
    }
    Ok(Outcome::Done)
}
