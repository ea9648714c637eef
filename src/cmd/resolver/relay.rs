use super::placed::Placed;
use super::stdio;
use crate::args::{DaemonArgs, RelayArgs};
use crate::cmd::fleet::Fleet;
use crate::cmd::service::api as daemon;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use stado_fleet::link::relay::serve;
use std::sync::Arc;

/// `resolver relay`: the far side of a multiplex, over standard input and output. It ends with them.
pub(crate) async fn relay(args: RelayArgs, env: &Env) -> Verb {
    // A login's soft limit is often a thousand: each stream takes a descriptor here.
    crate::cmd::limits::raise();
    let fleet = Fleet::open(env)?;
    let io = stdio::take("relay").map_err(Failure::usage)?;
    let placed = Arc::new(Placed::new(fleet, args.key, daemon(&DaemonArgs::default(), env)?));
    tokio::select! {
        served = serve(io, placed.clone()) => {
            served.map_err(|error| Failure::here(format!("the relay ended: {error}")))?;
        }
        () = placed.follow() => {}
    }
    Ok(Outcome::Done)
}
