use super::versions::Versions;
use crate::args::DiffArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::edit;

/// `registry diff`: what one version says and another does not.
pub(crate) async fn diff(args: DiffArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let versions = Versions::read(&fleet, false).await?;
    let from = versions.find(args.from.as_deref())?;
    let to = match args.to.as_deref() {
        Some(text) => versions.find(Some(text))?,
        None => versions.now.clone(),
    };
    let (before, after) = (versions.content(&fleet, &from).await?, versions.content(&fleet, &to).await?);
    let differences = edit::diff(&before, &after);
    if args.json {
        ui::json(&json!({
            "location": versions.source.location(), "from": from, "to": to, "differences": differences,
        }))?;
    } else {
        let lines: String = differences.iter().map(|difference| format!("{difference}\n")).collect();
        ui::print(&lines)?;
    }
    Ok(Outcome::Done)
}
