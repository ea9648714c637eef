use super::daemon;
use crate::args::ListArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui::{self, Rows};

/// `services list`: name, kind, app_protocol, status, endpoint.
pub(crate) async fn list(args: ListArgs, env: &Env) -> Verb {
    let services = daemon::api(&args.daemon, env)?.list().await?;
    let mut rows = Rows::new(&["name", "kind", "app_protocol", "status", "endpoint"]);
    for service in services {
        let named = args.name.as_deref().is_none_or(|part| service.name.contains(part));
        if named && args.status.as_deref().is_none_or(|status| service.status == status) {
            let endpoint = service.frontend.endpoint();
            rows = rows.with([service.name, service.kind, service.app_protocol, service.status, endpoint]);
        }
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}
