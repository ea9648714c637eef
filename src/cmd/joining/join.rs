//! `fleet join`.
use super::{here, paste, start};
use crate::args::{FleetJoin, FleetPlace};
use crate::cmd::fleet::Fleet;
use crate::config::{Env, HostConfig};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::authority::{RegistryError, Source};
use stado_fleet::join::{Asked, Invitation, Joined, Joiner, Pending, Step};

/// `fleet join`: a join that was cut goes on where it was, without the invitation.
pub(crate) async fn join(args: FleetJoin, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let Some(pending) = pending(&args, &fleet, env).await? else {
        return member_already(&args.place, &fleet, env).await;
    };
    if let Some(Source::Store(store)) = source(&fleet).await?
        && !store.direct()
        && store.read().await?.is_some()
    {
        return Err(Failure::refused(format!(
            "this host keeps a registry of its own ({}): a host is in one fleet. Move that directory away if it is not used any \
             more",
            store.location()
        )));
    }
    let json = args.place.json;
    let joiner = Joiner::new(&fleet.host.stado_home, &fleet.host.link);
    let asked = Asked { pending, release_platform: here::platform().into(), command: here::program()? };
    let mut tell = |step: Step| -> Result<(), RegistryError> {
        if !json {
            say(step);
        }
        Ok(())
    };
    let joined = joiner.join(&asked, &mut tell).await?;
    let started = start::ensure(env, &args.place, true).await?;
    let generation = if started.runs() { Some(start::serves(env, &joined.welcome.target).await?) } else { None };
    report(&joined, &started, generation, json)
}

fn report(joined: &Joined, started: &start::Started, serves: Option<u64>, json: bool) -> Verb {
    let Joined { welcome, hosts, generation } = joined;
    if json {
        ui::json(&json!({
            "target": welcome.target, "authority": welcome.authority, "hosts": hosts,
            "generation": serves.unwrap_or(*generation), "resolver": started.word(), "again": welcome.again,
        }))?;
        return Ok(Outcome::Done);
    }
    ui::line(format_args!(
        "{} is in the fleet of {} ({hosts} hosts, directory generation {})",
        welcome.target,
        welcome.authority,
        serves.unwrap_or(*generation)
    ))?;
    start::say(started, "next: `stado resolver status`, and `stado service directory show` for what there is");
    Ok(Outcome::Done)
}

fn say(step: Step) {
    let done = match step {
        Step::Kept => return,
        Step::Keys => "this host has its key",
        Step::Pinned => "the authority's host key is pinned in ~/.stado/known_hosts",
        Step::Admitted => "the authority has taken this host in",
        Step::Named => "this host knows its name (~/.stado/config.json)",
        Step::Copied => "the registry was read with this host's own key",
        Step::Done => "nothing of the invitation is left here",
    };
    ui::note(done);
}

/// What is to be done: a new invitation, or the one of a join that was cut. `None` when this host is in a fleet and nothing
/// was given.
async fn pending(args: &FleetJoin, fleet: &Fleet, env: &Env) -> Result<Option<Pending>, Failure> {
    let host = &fleet.host;
    let before = Pending::read(&host.stado_home).map_err(Failure::config)?;
    let member = matches!(source(fleet).await?, Some(Source::Remote(_)));
    let text = match (&args.file, &before) {
        (None, Some(_)) => {
            let another = paste::piped()?;
            if another.is_none() {
                ui::note("going on with the join that was begun here; give --file to use another invitation");
            }
            another
        }
        (None, None) if member => None,
        _ => Some(paste::read(args.file.as_deref())?),
    };
    let given = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    match (given, before) {
        (Some(text), _) => fresh(args, (host, env), text).map(Some),
        (None, Some(before)) => Ok(Some(before)),
        (None, None) if member => Ok(None),
        (None, None) => Err(Failure::usage(
            "no invitation was given: `stado fleet invite` on the first host prints it; paste it here, or --file PATH",
        )),
    }
}

/// Where this host reads and writes. `None`: a join that was begun here was cut while it wrote the copy that names the authority,
/// and goes on to write it again.
async fn source(fleet: &Fleet) -> Result<Option<Source>, Failure> {
    match fleet.source().await {
        Err(_) if Pending::file(&fleet.host.stado_home).exists() => Ok(None),
        source => source.map(Some),
    }
}

fn fresh(args: &FleetJoin, (host, env): (&HostConfig, &Env), text: &str) -> Result<Pending, Failure> {
    let invitation = Invitation::parse(text)?;
    let name = here::name(host, env, args.place.name.as_deref(), invitation.name.as_ref())?;
    let way = here::way(host, &args.place, false)?;
    let address = way.as_ref().map(|way| way.address.to_string());
    Ok(Pending { invitation: invitation.reveal(), name, address, door: way.map(|way| way.door) })
}

/// Nothing to join: the resolver is seen to, and the state is said.
async fn member_already(place: &FleetPlace, fleet: &Fleet, env: &Env) -> Verb {
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let me = fleet.target(registry, None)?;
    let started = start::ensure(env, place, false).await?;
    let serves = if started.runs() { Some(start::serves(env, &me).await?) } else { None };
    let authority = registry.directory.as_ref().map(|d| d.authority_target.to_string()).unwrap_or_default();
    if place.json {
        ui::json(&json!({
            "target": me, "authority": authority, "hosts": registry.targets.len(), "generation": serves,
            "resolver": started.word(), "again": true,
        }))?;
        return Ok(Outcome::Done);
    }
    ui::line(format_args!("{me} is in the fleet of {authority} already"))?;
    start::say(&started, "`stado fleet leave` takes it out");
    Ok(Outcome::Done)
}
