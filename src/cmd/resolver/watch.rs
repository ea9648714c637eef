use super::stdio;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use stado_fleet::authority::{self, Bulletin, Holders};

/// `resolver watch`: each version of this host's own store, until standard input ends. What the reader says that it holds is kept.
pub(crate) async fn watch(env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let io = stdio::take("watch").map_err(Failure::usage)?;
    let (bulletin, holders) = (Bulletin::new(fleet.store.clone()), Holders::new(&fleet.host.stado_home));
    // Its reader leaves as it likes: that is no failure.
    let _ = authority::tell(&bulletin, &holders, io).await;
    Ok(Outcome::Done)
}
