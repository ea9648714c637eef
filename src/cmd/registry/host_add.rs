use crate::args::HostAddArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::write;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use stado_fleet::edit::{self, NewHost};

/// `registry host add`.
pub(crate) async fn host_add(args: HostAddArgs, env: &Env) -> Verb {
    let HostAddArgs { host, ssh, release_platform, kind } = args;
    let new = NewHost { name: host, kind, ssh, release_platform };
    let fleet = Fleet::open(env)?;
    let written = write::once(&fleet, |held, location| edit::add_host(held, location, &new), |edited| edited).await?;
    if let Some(committed) = written.committed {
        ui::line(format_args!(
            "added {} (kind={}, release_platform={}, ssh={}) -> {} generation={}",
            new.name, new.kind, new.release_platform, new.ssh, committed.location, committed.version
        ))?;
    }
    Ok(Outcome::Done)
}
