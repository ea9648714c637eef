//! Which markers the directory declares for one host: pure.
use super::{Declared, Skipped};
use crate::document::{AdapterPolicy, DirectoryService, Registry, Target};
use crate::name::{LogicalName, Scheme, TargetName};
use std::collections::HashMap;
use std::net::SocketAddr;

/// What the directory declares for `target`. `adapter_bind` resolves adapters without a declared bind (service, consumer) → bind.
///
/// An endpoint of the target itself comes first; else its one adapter for the service, with the scheme that the service
/// speaks on its active host. A marker names no consumer, so two adapters are ambiguous and skipped.
pub fn declared(
    registry: &Registry,
    target: &TargetName,
    adapter_bind: &dyn Fn(&str, &str) -> Option<SocketAddr>,
) -> (Vec<Declared>, Vec<Skipped>) {
    let (mut markers, mut skipped) = (Vec::new(), Vec::new());
    let Some(directory) = &registry.directory else { return (markers, skipped) };
    let adapters = by_service(registry.targets.get(target));
    for (name, service) in &directory.services {
        let adapters = adapters.get(name).map_or(&[][..], Vec::as_slice);
        match address(target, name, service, adapters, adapter_bind) {
            Ok((url, source)) => markers.push(Declared { service: name.to_string(), url, source }),
            Err(reason) => skipped.push(Skipped { service: name.to_string(), reason }),
        }
    }
    (markers, skipped)
}

fn by_service(target: Option<&Target>) -> HashMap<&LogicalName, Vec<&AdapterPolicy>> {
    let mut adapters: HashMap<_, Vec<_>> = HashMap::new();
    for adapter in target.and_then(|t| t.resolver.as_ref()).iter().flat_map(|policy| &policy.adapters) {
        adapters.entry(&adapter.service).or_default().push(adapter);
    }
    adapters
}

fn address(
    target: &TargetName,
    name: &LogicalName,
    service: &DirectoryService,
    adapters: &[&AdapterPolicy],
    adapter_bind: &dyn Fn(&str, &str) -> Option<SocketAddr>,
) -> Result<(String, &'static str), String> {
    if let Some(endpoint) = service.endpoints.get(target) {
        return Ok((endpoint.to_string(), "directory-endpoint"));
    }
    match adapters {
        [] => Err(format!(
            "service_directory declares no endpoint for {target} and its resolver declares no {name} adapter"
        )),
        [one] => {
            let consumer = one.consumer.as_str();
            let bind = one.bind.or_else(|| adapter_bind(name.as_str(), consumer)).ok_or_else(|| {
                format!(
                    "this host's resolver declares its {name} adapter for consumer {consumer} without a bind and has not \
                     handed out a port for it yet; start it with `stado resolver serve`"
                )
            })?;
            Ok((format!("{}://{bind}", scheme(service).as_str()), "resolver-adapter"))
        }
        several => {
            let consumers: Vec<_> = several.iter().map(|a| a.consumer.as_str()).collect();
            Err(format!(
                "this host's resolver declares {} {name} adapters, one per consumer ({}), and a marker names no consumer; \
                 read the address from the consumer's own adapter",
                several.len(),
                consumers.join(", ")
            ))
        }
    }
}

fn scheme(service: &DirectoryService) -> Scheme {
    service.endpoints.get(&service.active_host).map_or(Scheme::Http, |endpoint| endpoint.scheme)
}
