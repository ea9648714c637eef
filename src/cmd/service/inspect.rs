use super::{daemon, known};
use crate::args::NamedArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::wire::{BackendAddr, Frontend};

const COLUMNS: [&str; 9] =
    ["name", "kind", "status", "frontend", "backend", "source", "owner_key", "producer_id", "docker_container_id"];

/// `services inspect`: what stands behind one service.
pub(crate) async fn inspect(args: NamedArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let found = known(&api, &args.name, api.inspect(&args.name).await).await?;
    let rows = Rows::new(&COLUMNS).with([
        found.name,
        found.kind,
        found.status,
        found.frontend.endpoint(),
        found.backend.as_ref().map(address).unwrap_or_default(),
        found.source,
        found.owner_key,
        found.producer_id,
        found.docker_container_id,
    ]);
    ui::print(&ui::render(&rows, &args.output)?)?;
    if let Some(note) = found.note {
        ui::note(format_args!("{}: {note}", args.name));
    }
    if let Some(reason) = found.reason {
        let since = found.since.map(|since| format!(" (since {since})")).unwrap_or_default();
        let hop = found.hop.map(|hop| format!("the {hop} is unavailable: ")).unwrap_or_default();
        ui::note(format_args!("{}: {hop}{reason}{since}", args.name));
    }
    Ok(Outcome::Done)
}

/// `host:port`, with brackets where they are needed; empty without a port.
fn address(backend: &BackendAddr) -> String {
    let port = u16::try_from(backend.port).unwrap_or_default();
    Frontend { host: backend.host.clone(), port, url: String::new() }.endpoint()
}
