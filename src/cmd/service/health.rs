use super::daemon;
use crate::args::RowsArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui::{self, Rows};

/// `health`: status, version, docker.
pub(crate) async fn health(args: RowsArgs, env: &Env) -> Verb {
    let health = daemon::api(&args.daemon, env)?.health().await?;
    let rows = Rows::new(&["status", "version", "docker"]).with([health.status, health.version, health.docker]);
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}
