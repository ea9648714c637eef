//! `service forget`, `service pin`, `service rename`.
use super::{daemon, known};
use crate::args::{ForgetArgs, PinArgs, RenameArgs};
use crate::client::{Api, Error};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::wire::Service;

/// `service forget`: the name is free, and so is its port.
pub(crate) async fn forget(args: ForgetArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    told(&api, &args.name, api.forget(&args.name, args.force).await).await?;
    ui::line(format_args!("forgot {}", args.name))?;
    Ok(Outcome::Done)
}

/// `service pin`: a row as `resolve` prints it.
pub(crate) async fn pin(args: PinArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let service = told(&api, &args.name, api.pin(&args.name, args.port).await).await?;
    ui::print(&ui::render(&row(service), &args.output)?)?;
    Ok(Outcome::Done)
}

/// `service rename`: a row as `resolve` prints it.
pub(crate) async fn rename(args: RenameArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let service = told(&api, &args.name, api.rename(&args.name, &args.new_name).await).await?;
    ui::print(&ui::render(&row(service), &args.output)?)?;
    Ok(Outcome::Done)
}

/// An older daemon has no such route, and answers that in plain text.
async fn told<T>(api: &Api, name: &str, answer: Result<T, Error>) -> Result<T, Failure> {
    match &answer {
        Err(Error::Api { status: 404 | 405, code, .. }) if code == "internal_error" => Err(Failure::refused(
            "the daemon on this socket is the first specification's own, which cannot do this; `stado resolver serve` or our devmeshd can",
        )),
        _ => known(api, name, answer).await,
    }
}

fn row(service: Service) -> Rows {
    let endpoint = service.frontend.endpoint();
    Rows::new(&["name", "kind", "status", "endpoint"]).with([service.name, service.kind, service.status, endpoint])
}
