use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use stado_fleet::authority;

/// `resolver snapshot`: this host's own store, on one line (fleet contract §3.2). Never another host's: who asks here
/// believes that this is the authority.
pub(crate) async fn snapshot(env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    ui::line(authority::snapshot_line(fleet.store.as_ref()).await?)?;
    Ok(Outcome::Done)
}
