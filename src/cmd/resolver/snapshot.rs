use crate::args::SnapshotArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority;

/// `resolver snapshot`: this host's own store, on one line (fleet contract §3.2). Never another host's: who asks here
/// believes that this is the authority.
pub(crate) async fn snapshot(args: SnapshotArgs, env: &Env) -> Verb {
    let newer_than = args.if_newer_than.as_deref().map(str::parse).transpose();
    let newer_than = newer_than.map_err(|e| Failure::usage(format!("--if-newer-than: {e}")))?;
    let fleet = Fleet::open(env)?;
    ui::line(authority::snapshot_line(fleet.store.as_ref(), newer_than.as_ref()).await?)?;
    Ok(Outcome::Done)
}
