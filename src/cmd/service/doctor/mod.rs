//! `doctor`: is the daemon there, does this host let it work, are containers served. A check a function: [`host`], [`docker`].
mod docker;
mod host;

use super::daemon;
use crate::args::RowsArgs;
use crate::cmd::mute::Mute;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};

/// One line of the report.
pub(crate) struct Check {
    pub(crate) name: String,
    /// `ok`, `skip` or `fail`; only the last fails the command.
    pub(crate) status: &'static str,
    pub(crate) detail: String,
    /// What to do, where the finding itself says it.
    pub(crate) remedy: Option<String>,
}

impl Check {
    fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: "ok", detail: detail.into(), remedy: None }
    }

    fn skip(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: "skip", detail: detail.into(), remedy: None }
    }

    fn fail(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status: "fail", detail: detail.into(), remedy: None }
    }
}

/// Rows are printed before a failing exit.
pub(crate) async fn doctor(args: RowsArgs, env: &Env) -> Verb {
    let checks = checks(&args, env).await?;
    let failed = checks.iter().any(|check| check.status == "fail");
    let mut rows = Rows::new(&["check", "status", "detail"]);
    for check in checks {
        rows = rows.with([check.name, check.status.to_owned(), check.detail]);
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    if failed { Err(Failure::here("doctor found failing checks")) } else { Ok(Outcome::Done) }
}

/// What the mesh of this host needs.
pub(crate) async fn checks(args: &RowsArgs, env: &Env) -> Result<Vec<Check>, Failure> {
    let mut checks = daemon_reachable(args, env).await?;
    checks.extend(host::checks(&daemon::socket(&args.daemon, env)));
    Ok(checks)
}

async fn daemon_reachable(args: &RowsArgs, env: &Env) -> Result<Vec<Check>, Failure> {
    let api = daemon::api(&args.daemon, env)?;
    let health = match api.health().await {
        Ok(health) => health,
        Err(error) => {
            const NAME: &str = "daemon-reachable";
            return Ok(vec![match Mute::behind(&error, env).await {
                Some(mute) => Check { remedy: Some(mute.remedy()), ..Check::fail(NAME, mute.sentence()) },
                None => Check::fail(NAME, error.to_string()),
            }]);
        }
    };
    let mut checks = vec![Check::ok("daemon-reachable", format!("version {}", health.version))];
    // A daemon of the first version does not know the question.
    let refused = api.refused().await.unwrap_or_default();
    checks.extend(docker::checks(&health.docker, &refused, env).await);
    Ok(checks)
}
