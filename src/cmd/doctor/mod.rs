//! `stado doctor`: what this host needs and does not have (fleet contract §6.15). A check a file; the mesh's own are those of
//! `devmesh doctor`.
mod databases;
mod hosts;
mod mesh;
mod object_auth;
mod placement;
mod queue;
mod registry;
mod report;
mod resolver;
mod ssh;

use crate::args::DoctorArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use report::{Check, Report};

/// Checks, prints, and fails when one failed.
pub(crate) async fn doctor(args: DoctorArgs, env: &Env) -> Verb {
    let report = report(&args, env).await?;
    if args.json {
        ui::json(&serde_json::to_value(&report).map_err(|e| Failure::here(e.to_string()))?)?;
    } else {
        ui::print(&ui::render(&report.rows(args.fix_hints), &args.rows.output)?)?;
    }
    report.failure().map_or(Ok(Outcome::Done), |sentence| Err(Failure::here(sentence)))
}

/// The checks that need this host's configuration, and the ones that were asked for beside them.
fn skipped(args: &DoctorArgs) -> impl Iterator<Item = (&'static str, &'static str)> {
    let always = [placement::ABOUT, object_auth::ABOUT, queue::ABOUT, resolver::ABOUT, ssh::ABOUT, databases::ABOUT];
    let preflight = [hosts::TRANSACTION, hosts::HOSTS].into_iter().filter(|_| args.deployment_preflight);
    always.into_iter().chain(preflight).chain([hosts::VERSIONS].into_iter().filter(|_| args.release_verification))
}

/// What `stado doctor` tells.
pub(crate) async fn report(args: &DoctorArgs, env: &Env) -> Result<Report, Failure> {
    let mut checks = mesh::checks(&args.rows, env).await?;
    checks.extend(of_fleet(args, env).await);
    Ok(Report::new(checks, Timestamp::now()))
}

/// What the fleet's side of this host needs. A host that is the mesh alone has nothing to check there.
async fn of_fleet(args: &DoctorArgs, env: &Env) -> Vec<Check> {
    let fleet = match Fleet::open(env) {
        Ok(fleet) => fleet,
        Err(failure) => {
            let mut checks = vec![registry::unreadable(&failure)];
            checks.extend(skipped(args).map(|about| Check::skip(about, "this host's configuration could not be read")));
            return checks;
        }
    };
    let (check, answer) = registry::check(&fleet).await;
    let mut checks = vec![check];
    checks.extend(placement::checks(&fleet, answer.as_ref()).await);
    checks.extend(object_auth::checks(&fleet, env).await);
    checks.extend(queue::checks(answer.as_ref()));
    checks.push(resolver::check(&fleet, answer.as_ref()).await);
    checks.extend(ssh::checks(&fleet, answer.as_ref()).await);
    checks.extend(databases::checks(&fleet, answer.as_ref(), env).await);
    if args.deployment_preflight {
        checks.extend(hosts::preflight(&fleet, answer.as_ref()).await);
    }
    if args.release_verification {
        checks.extend(hosts::release(&fleet, answer.as_ref()).await);
    }
    checks
}
