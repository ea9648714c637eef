use super::look::Look;
use crate::args::EndpointArgs;
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::directory::NoRoute;

/// `service directory bind`: what the service has to listen on, on the host that serves it.
pub(crate) async fn bind(args: EndpointArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let (name, service) = look.service(&args.name)?;
    let target = look.target(args.target.as_deref())?;
    if service.active_host != target {
        return Err(Failure::refused(format!(
            "{name} is placed on {}, not on {target}; only the placed host serves it",
            service.active_host
        )));
    }
    let endpoint = service.endpoints.get(&target);
    let address = endpoint.ok_or_else(|| Failure::config(NoRoute::NoEndpoint(name.clone()).to_string()))?.addr;
    if args.json {
        ui::json(&json!({
            "service": name, "host": target, "bind_address": address.to_string(), "encrypted_peers": [],
            "registry": provenance(&look.answer),
        }))?;
    } else {
        ui::line(format_args!("bind_address={address}\nencrypted_peers="))?;
    }
    Ok(Outcome::Done)
}
