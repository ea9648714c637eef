//! HTTP services of the fleet by hostname: every adapter whose endpoint is `http` gets the name that is made from its
//! service's (`<slug>.localhost`), by the same rules as the mesh, and after it.
use super::hostname;
use super::site::Protocol;
use super::sites::{Facts, Shaded, Sites};
use crate::apply::held::{Held, HeldReader};
use crate::apply::want::DEFAULT_BUDGET;
use crate::conn::Backend;
use stado_fleet::directory::NoRoute;
use stado_fleet::document::AdapterPolicy;
use stado_fleet::name::Scheme;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Keeps the table true to what this host holds of the registry, until `stop`.
pub fn follow(mut held: HeldReader, sites: Arc<Sites>, stop: CancellationToken) {
    tokio::spawn(async move {
        loop {
            let now = held.borrow_and_update().clone();
            if let Some(now) = now {
                let (facts, nameless) = claims(&now);
                sites.set_fleet(facts, nameless);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = held.changed() => if changed.is_err() { return },
            }
        }
    });
}

/// What the adapters of this host claim, and those that no hostname can be made for. Pure.
fn claims(held: &Held) -> (Vec<Facts>, Vec<Shaded>) {
    let (mut facts, mut nameless) = (Vec::new(), Vec::new());
    for policy in &held.policy.adapters {
        let route = held.directory.resolve(policy.service.as_str(), policy.consumer.as_str());
        let backend = match route {
            Ok(route) if route.endpoint.scheme == Scheme::Http => Backend::Fleet(route),
            Err(reason) if is_http(held, policy, &reason) => Backend::None(reason.to_string().into()),
            Ok(_) | Err(_) => continue,
        };
        let (service, consumer): (Arc<str>, Option<Arc<str>>) =
            (policy.service.as_str().into(), Some(policy.consumer.as_str().into()));
        match made_for(&service) {
            Ok(host) => facts.push(Facts {
                service,
                consumer,
                host: host.into(),
                protocol: Protocol::Http1,
                backend,
                since: None,
                budget: policy.connect_seconds.filter(|s| *s > 0).map_or(DEFAULT_BUDGET, Duration::from_secs),
            }),
            Err(reason) => nameless.push(Shaded { service, consumer, reason }),
        }
    }
    (facts, nameless)
}

/// Whether a service without a route is an http one: then its hostname stays known and answers why.
fn is_http(held: &Held, policy: &AdapterPolicy, reason: &NoRoute) -> bool {
    let known = !matches!(reason, NoRoute::UnknownService(_));
    let directory = held.directory.registry().directory.as_ref();
    let service = directory.filter(|_| known).and_then(|directory| directory.services.get(&policy.service));
    service.is_some_and(|service| service.endpoints.values().any(|endpoint| endpoint.scheme == Scheme::Http))
}

fn made_for(service: &str) -> Result<String, String> {
    let host = hostname::of_service(service)?;
    if hostname::is_reserved(&host) {
        return Err(format!("hostname {host} is this daemon's own; the service is reached by its adapter's address"));
    }
    Ok(host)
}
