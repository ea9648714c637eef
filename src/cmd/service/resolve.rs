use super::{daemon, known};
use crate::args::ResolveArgs;
use crate::client::{Api, Error};
use crate::config::{Env, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::fault::{Blame, Class};
use stado_fleet::wire::Service;
use std::time::Duration;
use tokio::time::Instant;

/// How often a waiting resolve asks.
const POLL: Duration = Duration::from_millis(250);

/// `services resolve`: name, kind, status, endpoint; with `--raw` the endpoint alone, and only one that has a backend.
pub(crate) async fn resolve(args: ResolveArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let service = match &args.wait {
        None => known(&api, &args.name, api.resolve(&args.name).await).await?,
        Some(text) => {
            let limit =
                parse_duration(text).ok_or_else(|| Failure::usage(format!("invalid --wait duration {text:?}")))?;
            until_ready(&api, &args.name, Some(limit)).await?
        }
    };
    if args.raw {
        return raw(&service);
    }
    let endpoint = service.frontend.endpoint();
    let rows =
        Rows::new(&["name", "kind", "status", "endpoint"]).with([service.name, service.kind, service.status, endpoint]);
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}

fn raw(service: &Service) -> Verb {
    if service.status != "ready" {
        return Err(unavailable(service));
    }
    ui::line(address(service)?)?;
    Ok(Outcome::Done)
}

/// [`Service::address`], or why the verb fails.
pub(super) fn address(service: &Service) -> Result<String, Failure> {
    service.address().map_err(|why| Failure::here(why).until_it_ends())
}

/// [`Service::unavailable`], as the end of a verb.
pub(super) fn unavailable(service: &Service) -> Failure {
    Failure::new(Class::Refused, Blame::Service, service.unavailable()).until_it_ends()
}

/// Asks until the service is ready, or the limit has passed: then the last answer stands, be it a row or an error.
/// A request in flight is not cut.
pub(super) async fn until_ready(api: &Api, name: &str, limit: Option<Duration>) -> Result<Service, Failure> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        let answer = api.resolve(name).await;
        match &answer {
            Ok(service) if service.status == "ready" => return Ok(answer?),
            Err(error) if !may_come(error) => return known(api, name, answer).await,
            _ => {}
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return known(api, name, answer).await;
        }
        // The last look is at the deadline itself, not at the last whole step before it.
        let next = now + POLL;
        tokio::time::sleep_until(deadline.map_or(next, |deadline| deadline.min(next))).await;
    }
}

/// Whether a later answer may differ: the daemon is away or in trouble, or does not know the name yet.
fn may_come(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Api { status, .. } => *status == 404 || *status >= 500,
        Error::Invalid(_) | Error::Listener(_) => false,
    }
}
