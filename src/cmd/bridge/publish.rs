use super::{here, number, shown};
use crate::args::{DaemonArgs, ServicePublishArgs};
use crate::client::{Api, Error};
use crate::cmd::{service, write};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::json;
use stado_fleet::edit::bridge::{self, NewPublication, Published, Role};
use stado_fleet::name::{Endpoint, LoopbackAddr, Scheme};
use stado_fleet::wire::{Frontend, Inspect};

/// `service publish`: the service's stable frontend becomes an endpoint of the directory. Publishing again brings the entry
/// to what the service is now.
pub(crate) async fn publish(args: ServicePublishArgs, env: &Env) -> Verb {
    let mesh = mesh(&args.daemon, env, &args.name).await?;
    let (fleet, me) = here(env).await?;
    let new = NewPublication {
        service: args.service.clone().unwrap_or_else(|| mesh.service.name.clone()),
        host: me.to_string(),
        mesh: mesh.service.name.clone(),
        endpoint: mesh.endpoint,
        hostname: Some(mesh.service.hostname.clone()).filter(|host| !host.is_empty()),
        app_protocol: mesh.service.app_protocol.clone(),
        consumers: args.consumers.clone(),
        standby: args.standby,
        at: Timestamp::now().to_string(),
    };
    let written = write::retried(&fleet, |held, _| bridge::publish(held, &new), |done| &done.edited).await?;
    report(&args, &new, &written.done)?;
    if mesh.service.status != "ready" {
        let reason = mesh.service.reason.unwrap_or_default();
        ui::note(format_args!("{} has no backend now ({reason}); it is reached as soon as it has one", args.name));
    }
    Ok(Outcome::Done)
}

/// A service of this host's mesh, and its stable frontend.
struct Local {
    service: Inspect,
    endpoint: Endpoint,
}

async fn mesh(daemon: &DaemonArgs, env: &Env, name: &str) -> Result<Local, Failure> {
    let api = service::api(daemon, env)?;
    let found = service::known(&api, name, api.inspect(name).await).await?;
    let (scheme, frontend) = match found.kind.as_str() {
        "http" => (Scheme::Http, expose(&api, name).await?),
        _ => (Scheme::Tcp, found.frontend.clone()),
    };
    Ok(Local { endpoint: Endpoint { scheme, addr: address(name, &frontend)? }, service: found })
}

/// A port of its own for a service that has a hostname only.
async fn expose(api: &Api, name: &str) -> Result<Frontend, Failure> {
    let exposed = api.expose(name).await.map_err(|error| match &error {
        Error::Api { status: 404 | 405, code, .. } if code == "internal_error" => Failure::refused(format!(
            "{name} is http, and the daemon on this socket is of an earlier version that gives such a service no port: \
             start it anew with this version (`stado resolver serve --take-over`)"
        )),
        _ => error.into(),
    })?;
    Ok(exposed)
}

fn address(name: &str, frontend: &Frontend) -> Result<LoopbackAddr, Failure> {
    let bound = Frontend { url: String::new(), ..frontend.clone() }.endpoint();
    bound.parse().map_err(|_| {
        Failure::refused(format!(
            "{name} has no loopback address to publish (its frontend is {bound:?}); see `stado service inspect {name}`"
        ))
    })
}

fn report(args: &ServicePublishArgs, new: &NewPublication, done: &Published) -> Result<(), Failure> {
    let NewPublication { service, host, mesh, endpoint, .. } = new;
    let role = match done.role {
        Role::Active => "active",
        Role::Standby => "standby",
    };
    if args.json {
        return ui::json(&json!({
            "service": service, "mesh": mesh, "host": host, "role": role, "active_host": done.active_host,
            "endpoint": endpoint.to_string(), "consumers": done.consumers, "given": done.given,
            "changed": done.edited.changed, "generation": number(done.edited.generation),
        }));
    }
    let (generation, consumers) = (shown(done.edited.generation), done.consumers.join(", "));
    match done.role {
        Role::Active => ui::line(format_args!(
            "published {mesh} as {service} at {endpoint} of {host} for {consumers} generation={generation}"
        ))?,
        Role::Standby => ui::line(format_args!(
            "{host} stands by for {service} of {} with {mesh} at {endpoint} generation={generation}",
            done.active_host
        ))?,
    }
    for host in &done.given {
        ui::line(format_args!("{host} uses it from now on"))?;
    }
    if done.role == Role::Active {
        ui::note(format_args!("on another host: `stado service use {service}`"));
    }
    Ok(())
}
