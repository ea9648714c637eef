//! HTTP services of the fleet by hostname: every adapter whose endpoint is `http` gets the name that it has on the host that
//! publishes it, else the one that is made from its service's (`<slug>.localhost`), by the same rules as the mesh, and
//! after it.
use super::hostname;
use super::site::Protocol;
use super::sites::{Facts, Shaded, Sites};
use crate::apply::held::{Held, HeldReader};
use crate::apply::want::DEFAULT_BUDGET;
use crate::conn::Backend;
use crate::mesh::names;
use stado_fleet::directory::NoRoute;
use stado_fleet::document::{AdapterPolicy, PublishedUnit};
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
                // A request that found its site a moment ago may have begun after the adapters were withdrawn.
                for (service, consumer) in sites.set_fleet(facts, nameless) {
                    withdraw(&now, &sites, &service, &consumer);
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = held.changed() => if changed.is_err() { return },
            }
        }
    });
}

/// Ends what is open of a service that lost its hostname, where the directory no longer allows it.
fn withdraw(held: &Held, sites: &Sites, service: &str, consumer: &str) {
    if let (Ok(name), Ok(of)) = (service.parse(), consumer.parse())
        && let Some(why) = held.forbids(&name, &of)
    {
        sites.withdraw(service, consumer, &why);
    }
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
        let published = published(held, policy);
        match named(&service, published) {
            Ok(host) => facts.push(Facts {
                service,
                consumer,
                host: host.into(),
                // Whoever publishes it hands the stream on as it is: the protocol is spoken here.
                protocol: published.map_or(Protocol::Http1, |unit| Protocol::of(&unit.app_protocol)),
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

/// What the host that publishes the service says of it.
fn published<'h>(held: &'h Held, policy: &AdapterPolicy) -> Option<&'h PublishedUnit> {
    let directory = held.directory.registry().directory.as_ref()?;
    directory.services.get(&policy.service)?.published.as_ref()
}

/// A hostname that another host chose is judged like one that a registration asks for.
fn named(service: &str, published: Option<&PublishedUnit>) -> Result<String, String> {
    let host = match published.and_then(|unit| unit.hostname.as_deref()) {
        Some(host) => names::hostname(host).map_err(|refusal| refusal.to_string())?,
        None => hostname::of_service(service)?,
    };
    if hostname::is_reserved(&host) {
        return Err(format!("hostname {host} is this daemon's own; the service is reached by its adapter's address"));
    }
    Ok(host)
}
