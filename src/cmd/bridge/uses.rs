use super::served::{self, Awaited, Served};
use super::{here, number, shown};
use crate::args::{UnuseArgs, UseArgs};
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::{Env, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit::bridge::{self, NewUse};
use stado_fleet::fault::{Blame, Class};
use stado_fleet::name::TargetName;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// `service use`: an address of this host for a service of the fleet. It is printed once it is served.
pub(crate) async fn use_service(args: UseArgs, env: &Env) -> Verb {
    let patience = parse_duration(&args.wait);
    let patience = patience.ok_or_else(|| Failure::usage(format!("invalid --wait duration {:?}", args.wait)))?;
    let (fleet, me) = here(env).await?;
    match &args.service {
        Some(service) => one(&args, service, (&fleet, &me), patience).await,
        None => all(&args, (&fleet, &me), patience).await,
    }
}

async fn one(args: &UseArgs, service: &str, (fleet, me): (&Fleet, &TargetName), patience: Duration) -> Verb {
    let consumer = match args.consumers.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => return Err(Failure::usage("one service is used as one consumer; --consumer may be repeated with --all")),
    };
    if let Some(port) = args.port {
        is_free(port, service, fleet, me).await?;
    }
    let new = NewUse { service: service.to_owned(), host: me.to_string(), consumer, port: args.port };
    let written = write::retried(fleet, |held, _| bridge::use_service(held, &new), |done| &done.edited).await?;
    let (done, generation) = (&written.done, written.done.edited.generation);
    let wanted =
        Awaited { service, consumer: &done.consumer, bind: done.bind.as_deref(), generation: number(generation) };
    let served = served::wait(fleet, me, &wanted, patience).await?;
    if args.json {
        ui::json(&json!({
            "service": service, "host": me, "consumer": done.consumer, "active_host": done.active_host,
            "url": served.url, "hostname_url": served.hostname_url, "marker": served.marker,
            "changed": done.edited.changed, "generation": number(generation),
        }))?;
        return Ok(Outcome::Done);
    }
    print(service, &served)?;
    let (consumer, host) = (&done.consumer, &done.active_host);
    ui::note(format_args!("{service} of {host}, used by {me} as {consumer} generation={}", shown(generation)));
    Ok(Outcome::Done)
}

/// Refuses a port that somebody else holds before anything is written: the address that works now would be lost for it.
async fn is_free(port: u16, service: &str, fleet: &Fleet, me: &TargetName) -> Result<(), Failure> {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Err(error) = std::net::TcpListener::bind(bind) else { return Ok(()) };
    let answer = fleet.read(false).await?;
    let resolver = answer.snapshot.valid.registry.targets.get(me).and_then(|target| target.resolver.as_ref());
    let mut own = resolver.into_iter().flat_map(|resolver| &resolver.adapters);
    if own.any(|adapter| adapter.service.as_str() == service && adapter.bind.is_some_and(|own| own.port() == port)) {
        return Ok(());
    }
    let sentence = format!(
        "{bind} cannot be taken for {service}: {error}; `lsof -nP -iTCP:{port} -sTCP:LISTEN` names the holder; nothing was \
         changed"
    );
    Err(Failure::new(Class::InfraDown, Blame::ThisHost, sentence))
}

async fn all(args: &UseArgs, (fleet, me): (&Fleet, &TargetName), patience: Duration) -> Verb {
    let edit = |held: &_, _: &str| bridge::use_all(held, me.as_str(), &args.consumers);
    let written = write::retried(fleet, edit, |done| &done.edited).await?;
    let (done, generation) = (&written.done, written.done.edited.generation);
    let answer = fleet.read(false).await?;
    let policy = answer.snapshot.valid.registry.targets.get(me).and_then(|t| t.resolver.as_ref());
    let mut rows = Vec::new();
    for service in &done.given {
        let adapter = policy.and_then(|policy| policy.adapters.iter().find(|a| a.service.as_str() == service));
        let Some(adapter) = adapter else { continue };
        let bind = adapter.bind.map(|bind| bind.to_string());
        let (consumer, generation) = (adapter.consumer.as_str(), number(generation));
        let wanted = Awaited { service, consumer, bind: bind.as_deref(), generation };
        let served = served::wait(fleet, me, &wanted, patience).await?;
        rows.push((service, served));
    }
    let consumers = done.consumers.join(", ");
    if args.json {
        let given: Vec<_> = rows
            .iter()
            .map(|(service, s)| json!({"service": service, "url": s.url, "hostname_url": s.hostname_url, "marker": s.marker}))
            .collect();
        ui::json(&json!({
            "host": me, "consumers": done.consumers, "given": given, "changed": done.edited.changed,
            "generation": number(generation),
        }))?;
        return Ok(Outcome::Done);
    }
    for (service, served) in &rows {
        print(service, served)?;
    }
    ui::note(format_args!("{me} uses everything that is published for {consumers} generation={}", shown(generation)));
    Ok(Outcome::Done)
}

fn print(service: &str, served: &Served) -> Result<(), Failure> {
    ui::line(format_args!("{service} -> {}", served.url))?;
    if let Some(url) = &served.hostname_url {
        ui::line(format_args!("{service} -> {url}"))?;
    }
    Ok(())
}

/// `service unuse`: this host has no address for the service any more; its port stays remembered.
pub(crate) async fn unuse(args: UnuseArgs, env: &Env) -> Verb {
    let (fleet, me) = here(env).await?;
    let Some(service) = &args.service else {
        let edited = |held: &_, _: &str| bridge::leave_all(held, me.as_str());
        let generation = write::retried(&fleet, edited, |edited| edited).await?.done.generation;
        if args.json {
            ui::json(&json!({"host": me, "generation": number(generation)}))?;
        } else {
            let generation = shown(generation);
            ui::line(format_args!("{me} takes nothing by itself any more generation={generation}"))?;
        }
        return Ok(Outcome::Done);
    };
    let edit = |held: &_, _: &str| bridge::unuse(held, me.as_str(), service, args.consumer.as_deref());
    let done = write::retried(&fleet, edit, |done| &done.edited).await?.done;
    let generation = done.edited.generation;
    if args.json {
        ui::json(
            &json!({"service": service, "host": me, "consumers": done.consumers, "generation": number(generation)}),
        )?;
    } else {
        let (consumers, generation) = (done.consumers.join(", "), shown(generation));
        ui::line(format_args!("{me} no longer uses {service} as {consumers} generation={generation}"))?;
    }
    Ok(Outcome::Done)
}
