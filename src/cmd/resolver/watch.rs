use super::stdio;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use stado_fleet::authority;

/// `resolver watch`: each version of this host's own store, until standard input ends.
pub(crate) async fn watch(env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let io = stdio::take("watch").map_err(Failure::usage)?;
    // Its reader leaves as it likes: that is no failure.
    let _ = authority::tell(&authority::Bulletin::new(fleet.store.clone()), io).await;
    Ok(Outcome::Done)
}
