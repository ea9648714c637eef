use crate::args::RouteArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::forwards::Forwards;
use stado_fleet::name::LogicalName;

/// `route close`: removes a marker. It needs no registry, so that one that nobody declares any more goes too.
pub(crate) async fn close(args: RouteArgs, env: &Env) -> Verb {
    let name: LogicalName =
        args.service.parse().map_err(|e| Failure::usage(format!("SERVICE is {:?}: it {e}", args.service)))?;
    let fleet = Fleet::open(env)?;
    let dir = Forwards::new(&fleet.host.forwards_dir);
    let marker = dir.marker(name.as_str());
    if !dir.remove(name.as_str())? {
        return Err(Failure::not_found(format!(
            "no route to {name} is open on this host: there is no {}",
            marker.display()
        )));
    }
    if fleet.publisher_if_readable().alive().is_some() {
        ui::note(
            "this host's resolver keeps the markers that the directory declares: one of those is back at its next refresh",
        );
    }
    if args.json {
        ui::json(&json!({
            "status": "closed", "service": name, "forward": {"location": "local", "marker": marker},
        }))?;
    } else {
        ui::line(format_args!("closed {name} ({})", marker.display()))?;
    }
    Ok(Outcome::Done)
}
