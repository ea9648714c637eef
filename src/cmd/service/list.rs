use super::daemon;
use crate::args::ListArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::wire::RefusedList;
use std::collections::BTreeMap;

/// `services list`: name, kind, app_protocol, status, endpoint.
pub(crate) async fn list(args: ListArgs, env: &Env) -> Verb {
    if args.refused {
        return refused(args, env).await;
    }
    let api = daemon::api(&args.daemon, env)?;
    let services = match &args.owner {
        Some(owner) => api.list_owned(owner).await?,
        None => api.list().await?,
    };
    let mut rows = Rows::new(&["name", "kind", "app_protocol", "status", "endpoint"]);
    let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for service in services {
        let named = args.name.as_deref().is_none_or(|part| service.name.contains(part));
        if named && args.status.as_deref().is_none_or(|status| service.status == status) {
            let endpoint = service.frontend.endpoint();
            if let Some(note) = service.note {
                notes.entry(note).or_default().push(service.name.clone());
            }
            rows = rows.with([service.name, service.kind, service.app_protocol, service.status, endpoint]);
        }
    }
    for (note, names) in notes {
        ui::note(format_args!("{}: {note}", some(&names)));
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}

/// The first names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `services list --refused`: what containers ask for and do not get.
async fn refused(args: ListArgs, env: &Env) -> Verb {
    let list = daemon::api(&args.daemon, env)?.refused().await?;
    tell_engine(&list);
    let mut rows = Rows::new(&["container", "service", "label", "reason", "remedy", "since"]);
    for row in list.refused {
        if args.name.as_deref().is_none_or(|part| row.service.contains(part) || row.container.contains(part)) {
            rows = rows.with([row.container, row.service, row.label, row.reason, row.remedy, row.since]);
        }
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}

/// An empty list means nothing while nobody watches.
fn tell_engine(list: &RefusedList) {
    match &list.docker {
        None => ui::note("containers are not watched: the adapter is turned off (--docker-enabled)"),
        Some(engine) => {
            if let Some(error) = &engine.error {
                ui::note(format_args!("containers are not watched since {}: {error}", engine.since));
            }
        }
    }
}
