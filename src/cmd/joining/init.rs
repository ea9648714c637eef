//! `fleet init`.
use super::here::{self, Way};
use super::start;
use crate::args::FleetInit;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority::{self, PushRequest, Source};
use stado_fleet::document::Document;
use stado_fleet::edit::{Member, Overrides, check_write, found, found_in};
use stado_fleet::join::{Door, OwnConfig, public_key, read_or_make};
use stado_fleet::name::TargetName;

/// `fleet init`: every step that is done already is left as it is.
pub(crate) async fn init(args: FleetInit, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let name = here::name(&fleet.host, env, args.place.name.as_deref(), None)?;
    let Some(way) = here::way(&fleet.host, &args.place, true)? else {
        return Err(Failure::usage("--address says where other hosts reach this one"));
    };
    let member = member(&fleet, &name, &way).await?;
    let made = write(&fleet, &name, &member).await?;
    let named = OwnConfig::new(&fleet.host.stado_home).name(&name, Some(&way.door)).map_err(Failure::config)?;
    let started = start::ensure(env, &args.place, named).await?;
    if let (true, Door::Gate(bind)) = (started.runs(), &way.door) {
        start::gate_stands(env, *bind).await?;
    }
    let host_key = member.host_keys.first().map(String::as_str).unwrap_or_default();
    if args.place.json {
        ui::json(&json!({
            "target": name, "address": way.address.to_string(), "door": way.door, "host_key": host_key,
            "created": made, "resolver": started.word(),
        }))?;
        return Ok(Outcome::Done);
    }
    let what = if made { "is the first host of a new fleet" } else { "is the authority of its fleet" };
    ui::line(format_args!("{name} {what}; other hosts reach it at {} ({})", way.address, print(host_key)))?;
    start::say(&started, "next: `stado fleet invite` here, and `stado fleet join` on the next host");
    Ok(Outcome::Done)
}

/// As `ssh` shows a key.
fn print(key: &str) -> String {
    let key = stado_fleet::join::fingerprint(key).unwrap_or_default();
    format!("host key {key}")
}

async fn member(fleet: &Fleet, name: &TargetName, way: &Way) -> Result<Member, Failure> {
    let own = here::key_file(&fleet.host);
    let key = read_or_make(&own).map_err(|why| Failure::config(format!("the key {} {why}", own.display())))?;
    let host = &fleet.host;
    let host_keys = way.door.host_keys(&host.stado_home, &way.address, &host.link.timing).await;
    Ok(Member {
        name: name.to_string(),
        release_platform: here::platform().into(),
        ssh: Some(way.address.to_string()),
        command: here::program()?,
        host_keys: host_keys.map_err(Failure::config)?,
        key: public_key(&key),
    })
}

/// Writes the registry of a new fleet, or this host's part of the one that it keeps. Whether it is new.
async fn write(fleet: &Fleet, name: &TargetName, member: &Member) -> Result<bool, Failure> {
    let source = fleet.source().await?;
    if let Source::Remote(other) = &source {
        return Err(Failure::refused(format!(
            "this host is in the fleet of {} already: a host is in one fleet, and `stado fleet leave` ends the first",
            other.target
        )));
    }
    let Some((held, version)) = authority::fetch_for_write(&source, &fleet.link).await? else {
        push(fleet, &source, found(member)).await?;
        return Ok(true);
    };
    if let Some(other) = held.authority().filter(|other| *other != name.as_str()) {
        return Err(Failure::refused(format!(
            "the registry here names {other} as the authority, and this host is to be {name}: give --name {other} if it is that \
             host"
        )));
    }
    let edited = found_in(&held, member)?;
    if edited.changed {
        if let Some(line) = check_write(Some(&held), &edited.document)? {
            ui::note(line);
        }
        authority::commit_edit(&source, &fleet.link, &version, &edited.document).await?;
    }
    Ok(false)
}

async fn push(fleet: &Fleet, source: &Source, document: Document) -> Result<(), Failure> {
    let request = PushRequest {
        bytes: document.shared_bytes(),
        if_generation: "0".parse().ok(),
        overrides: Overrides::default(),
    };
    authority::push(source, &fleet.link, request).await?;
    Ok(())
}
