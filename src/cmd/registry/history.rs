use crate::args::HistoryArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::authority::{self, HistoryReport, Source};
use stado_fleet::document::Registry;
use stado_fleet::store::history::{Version, Writer};
use std::sync::Arc;

/// `registry history`: who wrote which version, and when; newest first.
pub(crate) async fn history(args: HistoryArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    if let Some(version) = &args.content {
        let version = version.parse().map_err(|e| Failure::usage(format!("--content: {e}")))?;
        ui::line(authority::content_line(fleet.store.as_ref(), &version).await?)?;
        return Ok(Outcome::Done);
    }
    let source = if args.here { Source::Store(Arc::clone(&fleet.store)) } else { fleet.source().await? };
    let mut report = authority::history(&source, &fleet.link).await?;
    if args.here && args.json {
        // One line: other hosts find it among what a login script may print, and want all of it.
        ui::line(serde_json::to_string(&report).map_err(|e| Failure::here(e.to_string()))?)?;
        return Ok(Outcome::Done);
    }
    report.versions.truncate(args.limit);
    if args.json {
        ui::json(&serde_json::to_value(&report).map_err(|e| Failure::here(e.to_string()))?)?;
        return Ok(Outcome::Done);
    }
    let copy = fleet.copy();
    ui::print(&text(&report, copy.as_ref().map(|c| c.snapshot.valid.registry.as_ref())))?;
    Ok(Outcome::Done)
}

fn text(report: &HistoryReport, registry: Option<&Registry>) -> String {
    let line = |version: &Version| {
        let directory = version.directory_generation.map_or("-".to_owned(), |g| g.to_string());
        let replaced = version.replaced.as_ref().map(|old| format!(" replaced={old}")).unwrap_or_default();
        format!("{}  {}  directory={directory}  {}{replaced}\n", version.at, version.version, by(version, registry))
    };
    report.versions.iter().map(line).collect()
}

fn by(version: &Version, registry: Option<&Registry>) -> String {
    let Some(Writer { user, host, from }) = &version.writer else { return "writer not known".to_owned() };
    match from {
        Some(from) => format!("{user}@{host} from {}", named(from, registry)),
        None => format!("{user}@{host}"),
    }
}

/// The target whose declared destination is this address, else the address.
fn named(address: &str, registry: Option<&Registry>) -> String {
    let mut targets = registry.into_iter().flat_map(|registry| registry.targets.values());
    let named = targets.find(|target| target.paths.iter().any(|path| path.destination.host == address));
    named.map_or_else(|| address.to_owned(), |target| format!("{} ({address})", target.name))
}
