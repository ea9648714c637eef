use super::look::Look;
use crate::args::EndpointArgs;
use crate::cmd::observations::{Observations, fact};
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::json;

/// `service directory endpoint`: the declared address of a service as one host reaches it; none is an answer.
pub(crate) async fn endpoint(args: EndpointArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let (name, service) = look.service(&args.name)?;
    let target = look.target(args.target.as_deref())?;
    let url = service.endpoints.get(&target).map(ToString::to_string);
    let observations = Observations::read(&look.fleet.host.stado_home);
    let observed = observations.text(&fact(name.as_str(), target.as_str()), jiff::Timestamp::now());
    let active = &service.active_host;
    if args.json {
        ui::json(&json!({
            "service": name, "target": target, "active_host": active, "url": url, "observed": observed,
            "registry": provenance(&look.answer),
        }))?;
    } else if let Some(url) = url {
        ui::line(format_args!("{name} active on {active}, reached from {target} at {url} (observed {observed})"))?;
    } else {
        ui::line(format_args!("{name} active on {active}; service_directory declares no endpoint for {target}"))?;
    }
    Ok(Outcome::Done)
}
