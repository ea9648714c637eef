use super::look::Look;
use crate::args::EndpointArgs;
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::directory::NoRoute;
use stado_fleet::document::{Registry, Target};
use stado_fleet::name::{LogicalName, TargetName};

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
    let peers = encrypted_peers(look.registry(), name, &target);
    if args.json {
        ui::json(&json!({
            "service": name, "host": target, "bind_address": address.to_string(), "encrypted_peers": peers,
            "registry": provenance(&look.answer),
        }))?;
    } else {
        let peers: Vec<&str> = peers.iter().map(|peer| peer.as_str()).collect();
        ui::line(format_args!("bind_address={address}\nencrypted_peers={}", peers.join(",")))?;
    }
    Ok(Outcome::Done)
}

/// The other hosts that declare an adapter for the service: they come over SSH, so the service needs no address but its
/// loopback one for them.
fn encrypted_peers<'r>(registry: &'r Registry, service: &LogicalName, host: &TargetName) -> Vec<&'r TargetName> {
    let relays = |target: &&Target| {
        target.resolver.as_ref().is_some_and(|policy| policy.adapters.iter().any(|a| a.service == *service))
    };
    registry.targets.values().filter(|target| target.name != *host).filter(relays).map(|target| &target.name).collect()
}
