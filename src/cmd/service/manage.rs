//! `service forget`, `service pin`, `service rename`.
use super::daemon;
use crate::args::{ForgetArgs, PinArgs, RenameArgs};
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::wire::Service;

/// `service forget`: the name is free, and so is its port.
pub(crate) async fn forget(args: ForgetArgs, env: &Env) -> Verb {
    daemon::api(&args.daemon, env)?.forget(&args.name, args.force).await?;
    ui::line(format_args!("forgot {}", args.name))?;
    Ok(Outcome::Done)
}

/// `service pin`: a row as `resolve` prints it.
pub(crate) async fn pin(args: PinArgs, env: &Env) -> Verb {
    let service = daemon::api(&args.daemon, env)?.pin(&args.name, args.port).await?;
    ui::print(&ui::render(&row(service), &args.output)?)?;
    Ok(Outcome::Done)
}

/// `service rename`: a row as `resolve` prints it.
pub(crate) async fn rename(args: RenameArgs, env: &Env) -> Verb {
    let service = daemon::api(&args.daemon, env)?.rename(&args.name, &args.new_name).await?;
    ui::print(&ui::render(&row(service), &args.output)?)?;
    Ok(Outcome::Done)
}

fn row(service: Service) -> Rows {
    let endpoint = service.frontend.endpoint();
    Rows::new(&["name", "kind", "status", "endpoint"]).with([service.name, service.kind, service.status, endpoint])
}
