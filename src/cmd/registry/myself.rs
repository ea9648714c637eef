use crate::args::SelfArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;

/// `registry self`: `<name>\t<kind>\t<hostname>`, or the name.
pub(crate) async fn myself(args: SelfArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let hostname = &fleet.host.hostname;
    let target = fleet.me(registry)?.and_then(|name| registry.targets.get(&name));
    let target =
        target.ok_or_else(|| Failure::not_found(format!("host {hostname} is not in {}", answer.source.location())))?;
    if args.json {
        ui::json(&json!({
            "target": target.name, "kind": target.kind, "hostname": hostname, "registry": provenance(&answer),
        }))?;
    } else if args.name_only {
        ui::line(&target.name)?;
    } else {
        ui::line(format_args!("{}\t{}\t{hostname}", target.name, target.kind))?;
    }
    Ok(Outcome::Done)
}
