use super::daemon;
use super::resolve::{address, unavailable, until_ready};
use crate::args::WaitArgs;
use crate::config::{Env, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::fault::{Blame, Class};

/// `service wait`: one line `name endpoint` for each service as it becomes ready, in the order asked.
pub(crate) async fn wait(args: WaitArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let limit = match &args.limit {
        Some(text) => {
            Some(parse_duration(text).ok_or_else(|| Failure::usage(format!("invalid --for duration {text:?}")))?)
        }
        None => None,
    };
    let deadline = limit.map(|limit| tokio::time::Instant::now() + limit);
    for name in &args.names {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(tokio::time::Instant::now()));
        if api.resolve(name).await.is_ok_and(|service| service.status != "ready") {
            ui::note(format_args!(
                "waiting for {name}{}",
                args.limit.as_deref().map_or(String::new(), |l| format!(", at most {l}"))
            ));
        }
        let service = until_ready(&api, name, left).await?;
        if service.status != "ready" {
            let gave_up = unavailable(&service);
            return Err(Failure::new(Class::Timeout, Blame::Service, format!("gave up waiting: {}", gave_up.message)));
        }
        ui::line(format_args!("{name} {}", address(&service)?))?;
    }
    Ok(Outcome::Done)
}
