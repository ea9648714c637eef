use crate::args::RouteOpenArgs;
use crate::cmd::directory::Look;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::forwards::{self, Forwards};

/// `route open`: writes the marker that this host's resolver would write. Never from a copy, as `service directory publish`.
pub(crate) async fn open(args: RouteOpenArgs, env: &Env) -> Verb {
    let look = Look::read(env, false).await?;
    let (name, _) = look.service(&args.route.service)?;
    let target = look.target(None)?;
    let publisher = look.fleet.publisher_if_readable();
    let given = |service: &str, consumer: &str| look.fleet.adapter_bind(&publisher, service, consumer);
    let (declared, skipped) = forwards::declared(look.registry(), &target, &given);
    let Some(mine) = declared.into_iter().find(|declared| declared.service == name.as_str()) else {
        let why = skipped.into_iter().find(|skipped| skipped.service == name.as_str()).map(|skipped| skipped.reason);
        let why = why.unwrap_or_else(|| format!("service_directory gives {target} no address for it"));
        return Err(Failure::refused(format!("no route to {name} can be opened on this host: {why}")));
    };
    let dir = Forwards::new(&look.fleet.host.forwards_dir);
    let (_, failed) = dir.keep(std::slice::from_ref(&mine));
    if let Some((_, error)) = failed.into_iter().next() {
        return Err(error.into());
    }
    let marker = dir.marker(&mine.service);
    if args.route.json {
        ui::json(&json!({
            "status": "open", "service": mine.service, "endpoint": mine.url,
            "forward": {"location": "local", "marker": marker},
        }))?;
    } else {
        ui::line(format_args!("{name} -> {} ({})", mine.url, marker.display()))?;
    }
    Ok(Outcome::Done)
}
