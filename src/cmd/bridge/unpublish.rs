use super::{here, number, shown};
use crate::args::UnpublishArgs;
use crate::cmd::{service, write};
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit::bridge;

/// `service unpublish`: the directory no longer has the service, or this host no longer stands by for it. The mesh keeps it.
pub(crate) async fn unpublish(args: UnpublishArgs, env: &Env) -> Verb {
    let (fleet, me) = here(env).await?;
    let host = args.host.clone().unwrap_or_else(|| me.to_string());
    // Read before it goes: what the mesh did for the fleet is undone behind it.
    let answer = fleet.read(false).await?;
    let mine = bridge::publications(&answer.snapshot.valid.document, &host);
    let mine = mine.into_iter().find(|publication| publication.service == args.service);
    let written =
        write::retried(&fleet, |held, _| bridge::unpublish(held, &args.service, &host), |done| &done.edited).await?;
    let done = written.done;
    if let Some(publication) = mine.filter(|publication| !publication.hostname.is_empty() && host == me.as_str()) {
        // A port that stays open does no harm; a daemon that is away has none open.
        if let Err(error) = service::api(&args.daemon, env)?.conceal(&publication.mesh).await {
            ui::note(format_args!("the port of {} stays open on this host: {error}", publication.mesh));
        }
    }
    let generation = done.edited.generation;
    if args.json {
        ui::json(&json!({
            "service": args.service, "host": host, "gone": done.gone, "adapters_removed": done.adapters,
            "generation": number(generation),
        }))?;
        return Ok(Outcome::Done);
    }
    let generation = shown(generation);
    if done.gone {
        let hosts = if done.adapters.is_empty() { "no host".to_owned() } else { done.adapters.join(", ") };
        ui::line(format_args!("{} is no longer published; {hosts} used it generation={generation}", args.service))?;
    } else {
        ui::line(format_args!("{host} no longer stands by for {} generation={generation}", args.service))?;
    }
    Ok(Outcome::Done)
}
