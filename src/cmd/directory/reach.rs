//! The address at which one host reaches a service: pure (fleet contract §6.9, `connect`).
use crate::exit::Failure;
use stado_fleet::directory::NoRoute;
use stado_fleet::document::{AdapterPolicy, DirectoryService, Registry};
use stado_fleet::name::{Endpoint, LogicalName, LoopbackAddr, LoopbackHost, Scheme, TargetName};
use std::net::{Ipv4Addr, SocketAddr};

/// An address, and the adapter that it is, unless it is the service itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How it is spoken to.
    pub(crate) scheme: Scheme,
    /// Where, on the host that asks.
    pub(crate) addr: SocketAddr,
    /// Consumer of the adapter.
    pub(crate) consumer: Option<String>,
}

impl Reach {
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.addr)
    }
}

/// Refuses a service that a placement transaction holds: what answers at its address now may be its old place.
pub(crate) fn available(registry: &Registry, name: &LogicalName, service: &DirectoryService) -> Result<(), Failure> {
    match registry.transaction_over(name, service) {
        Some(profile) => Err(NoRoute::InTransaction { service: name.clone(), profile }.into()),
        None => Ok(()),
    }
}

/// Finds it: on the host that serves, the endpoint; elsewhere that host's adapter for the consumer. A service behind SSH is
/// never handed out by the placed host's own address: it listens on loopback there, and nothing could be opened.
pub(crate) fn reach(
    registry: &Registry,
    (name, service): (&LogicalName, &DirectoryService),
    target: &TargetName,
    consumer: Option<&str>,
    given: &dyn Fn(&str, &str) -> Option<SocketAddr>,
) -> Result<Reach, Failure> {
    let endpoint = service.endpoints.get(&service.active_host);
    let endpoint =
        endpoint.ok_or_else(|| Failure::config(format!("service \"{name}\" has no endpoint on its active host")))?;
    if service.active_host == *target {
        return Ok(Reach { scheme: endpoint.scheme, addr: dialled(endpoint), consumer: None });
    }
    let adapter = adapter(registry, name, target, consumer)?;
    let consumer = adapter.consumer.as_str();
    let addr = adapter.bind.or_else(|| given(name.as_str(), consumer)).ok_or_else(|| {
        Failure::here(format!(
            "{target} declares its {name} adapter for {consumer} without a bind, and its resolver has not handed out a port \
             for it yet: start it there with `stado resolver serve`"
        ))
    })?;
    Ok(Reach { scheme: endpoint.scheme, addr, consumer: Some(consumer.to_owned()) })
}

fn dialled(endpoint: &Endpoint) -> SocketAddr {
    let LoopbackAddr { host, port } = endpoint.addr;
    match host {
        LoopbackHost::Ip(ip) => SocketAddr::new(ip, port),
        LoopbackHost::Localhost => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
    }
}

fn adapter<'a>(
    registry: &'a Registry,
    name: &LogicalName,
    target: &TargetName,
    consumer: Option<&str>,
) -> Result<&'a AdapterPolicy, Failure> {
    let policy = registry.targets.get(target).and_then(|t| t.resolver.as_ref());
    let mine = |a: &&AdapterPolicy| a.service == *name;
    let all: Vec<&AdapterPolicy> =
        policy.map(|p| p.adapters.as_slice()).unwrap_or_default().iter().filter(mine).collect();
    let declare = format!("declare one in registry.targets[{target}].service_resolver.adapters");
    match (consumer, all.as_slice()) {
        (Some(consumer), all) => all.iter().find(|a| a.consumer.as_str() == consumer).copied().ok_or_else(|| {
            Failure::not_found(format!(
                "{target} declares no resolver adapter for {name} as consumer {consumer}; {declare}"
            ))
        }),
        (None, [one]) => Ok(one),
        (None, []) => Err(Failure::not_found(format!("{target} declares no resolver adapter for {name}; {declare}"))),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|a| a.consumer.as_str()).collect();
            Err(Failure::usage(format!(
                "{target} declares {} resolver adapters for {name}, one per consumer ({}); name the caller with --consumer",
                several.len(),
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::document::{Document, PlacementTransaction};
    use stado_fleet::validate::validate;
    use std::sync::Arc;

    fn registry(adapters: &str) -> Arc<Registry> {
        let text = format!(
            r#"{{"schema_version":2,"targets":[
              {{"name":"control","kind":"local","release_platform":"linux-amd64","ssh":"ops@192.0.2.10","services":[{{"name":"db"}}]}},
              {{"name":"worker","kind":"local","release_platform":"linux-amd64","service_resolver":
                {{"api_bind":"127.0.0.1:17600","refresh_seconds":5,"max_stale_seconds":15,"adapters":[{adapters}]}}}}],
            "service_directory":{{"authority":{{"target":"control","command":"/opt/stado"}},"generation":1,"services":{{
              "db":{{"managed_service":"db","active_host":"control","endpoints":{{"control":{{"url":"tcp://127.0.0.1:5432"}}}},
                "consumers":{{"shop":{{"capabilities":[]}},"till":{{"capabilities":[]}}}}}}}}}}}}"#
        );
        validate(Document::parse(text.into_bytes()).unwrap()).unwrap().registry
    }
    fn found(adapters: &str, target: &str, consumer: Option<&str>) -> Result<String, String> {
        let registry = registry(adapters);
        let service = registry.directory.as_ref().unwrap().services.iter().next().unwrap();
        let given = |_: &str, consumer: &str| (consumer == "till").then(|| "127.0.0.1:19999".parse().unwrap());
        let reach = reach(&registry, service, &target.parse().unwrap(), consumer, &given);
        reach.map(|r| r.url()).map_err(|e| e.message)
    }
    const SHOP: &str = r#"{"service":"db","consumer":"shop","bind":"127.0.0.1:15432"}"#;
    const TILL: &str = r#"{"service":"db","consumer":"till"}"#;

    #[test]
    fn the_serving_host_uses_the_endpoint_and_others_their_adapter() {
        assert_eq!(found(SHOP, "control", None), Ok("tcp://127.0.0.1:5432".into()));
        assert_eq!(found(SHOP, "worker", None), Ok("tcp://127.0.0.1:15432".into()));
        assert_eq!(found(SHOP, "worker", Some("shop")), Ok("tcp://127.0.0.1:15432".into()));
    }

    #[test]
    fn several_adapters_need_a_consumer_and_a_missing_bind_is_the_one_handed_out() {
        let both = format!("{SHOP},{TILL}");
        assert_eq!(
            found(&both, "worker", None),
            Err("worker declares 2 resolver adapters for db, one per consumer (shop, till); name the caller with --consumer".into())
        );
        assert_eq!(found(&both, "worker", Some("till")), Ok("tcp://127.0.0.1:19999".into()));
    }

    #[test]
    fn a_service_that_is_being_moved_is_refused_with_the_resolvers_own_sentence() {
        let mut registry = Arc::unwrap_or_clone(registry(SHOP));
        let directory = registry.directory.clone().unwrap();
        let (name, service) = directory.services.iter().next().unwrap();
        assert_eq!(available(&registry, name, service), Ok(()));
        registry.profiles.insert("pp".into(), vec![name.clone()]);
        registry.transactions.push(PlacementTransaction { id: "t".into(), profile: "pp".into() });
        assert_eq!(
            available(&registry, name, service).unwrap_err().message,
            "service \"db\" is unavailable during placement transaction for \"pp\""
        );
    }

    #[test]
    fn no_adapter_is_said_with_where_to_declare_one() {
        let tail = "declare one in registry.targets[worker].service_resolver.adapters";
        assert_eq!(found("", "worker", None), Err(format!("worker declares no resolver adapter for db; {tail}")));
        assert_eq!(
            found(SHOP, "worker", Some("cron")),
            Err(format!("worker declares no resolver adapter for db as consumer cron; {tail}"))
        );
    }
}
