use crate::args::ApiReassignArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::ports_in_use;
use crate::cmd::remote::Remote;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit;
use std::collections::BTreeSet;

/// `resolver api-reassign`: another port for a host's resolution API, one that nothing listens on there. The host's resolver
/// follows with its next refresh, without a restart.
pub(crate) async fn api_reassign(args: ApiReassignArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(false).await?;
    let remote = Remote::of(&fleet, &answer.snapshot.valid.registry, &args.target)?;
    let taken: BTreeSet<u16> = ports_in_use(&remote).await.unwrap_or_else(|failure| {
        let why = failure.message;
        ui::note(format_args!("what listens on {} is not known, the registry alone decides: {why}", args.target));
        BTreeSet::new()
    });
    let reassign = |held: &_, _: &str| edit::reassign_api(held, &args.target, &taken);
    let written = write::retried(&fleet, reassign, |given| &given.edited).await?;
    let generation = written.committed.map_or(written.read, |committed| committed.version);
    let edit::ApiReassigned { previous, api_bind, .. } = written.done;
    if args.json {
        ui::json(&json!({
            "target": args.target, "previous": previous, "api_bind": api_bind, "generation": generation,
        }))?;
    } else {
        let target = &args.target;
        ui::line(format_args!(
            "the resolution API of {target} moves from {previous} to {api_bind}; generation={generation}"
        ))?;
    }
    Ok(Outcome::Done)
}
