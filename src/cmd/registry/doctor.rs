use crate::args::JsonArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde::Serialize;
use serde_json::{Value, json};
use stado_fleet::document::{Document, Registry, ResolverPolicy};
use stado_fleet::name::{Endpoint, TargetName};
use std::path::Path;

/// One thing that the document says and something else contradicts (fleet contract §6.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Divergence {
    finding: &'static str,
    subject: String,
    detail: String,
}

/// `registry doctor`: what can be told from the document and from this host. Whatever other hosts report about themselves
/// is theirs to publish; none of it is read here, and the counts say so.
pub(crate) async fn doctor(args: JsonArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let (document, registry) = (&answer.snapshot.valid.document, &answer.snapshot.valid.registry);
    let mut findings = self_references(document, registry);
    if let Some(me) = fleet.me(registry)? {
        findings.extend(missing_units(document, &me));
    }
    let location = answer.source.location();
    let adapters: usize = registry.targets.values().filter_map(|t| Some(t.resolver.as_ref()?.adapters.len())).sum();
    let services = registry.directory.as_ref().map_or(0, |d| d.services.len());
    if args.json {
        ui::json(&json!({
            "registry": location, "ok": findings.is_empty(),
            "checked": {
                "targets": registry.targets.len(), "services": services, "adapters": adapters, "beacons": 0,
                "capacity_consumers": 0,
            },
            "findings": findings,
        }))?;
    } else {
        let lines: String = findings.iter().map(|f| format!("{} {}: {}\n", f.finding, f.subject, f.detail)).collect();
        ui::print(&lines)?;
    }
    if findings.is_empty() {
        if !args.json {
            ui::line(format_args!(
                "registry {location} agrees with live host state ({} targets, {services} services, {adapters} adapters)",
                registry.targets.len()
            ))?;
        }
        return Ok(Outcome::Done);
    }
    Err(Failure::refused(format!("{} divergence(s) between {location} and live host state", findings.len())))
}

/// Endpoints and standby addresses that are one of the same host's own resolver sockets. Never a validation error: it
/// would make every resolver refuse the document (§1.6).
fn self_references(document: &Document, registry: &Registry) -> Vec<Divergence> {
    let services = document.value().pointer("/service_directory/services").and_then(Value::as_object);
    let mut found = Vec::new();
    for (service, entry) in services.into_iter().flatten() {
        for section in ["endpoints", "standby"] {
            for (target, endpoint) in entry.get(section).and_then(Value::as_object).into_iter().flatten() {
                let url = endpoint.get("url").and_then(Value::as_str).and_then(|url| url.parse::<Endpoint>().ok());
                let policy =
                    target.parse::<TargetName>().ok().and_then(|t| registry.targets.get(&t)?.resolver.as_ref());
                let Some((endpoint, policy)) = url.zip(policy) else { continue };
                if let Some(socket) = own_socket(policy, &endpoint) {
                    found.push(Divergence {
                        finding: "self-referencing-endpoint",
                        subject: service.clone(),
                        detail: format!(
                            "service_directory.services.{service}.{section}.{target} is {}, which is {socket} on that same \
                             target: the adapter would proxy to itself",
                            endpoint.addr
                        ),
                    });
                }
            }
        }
    }
    found
}

fn own_socket(policy: &ResolverPolicy, endpoint: &Endpoint) -> Option<String> {
    let candidates = endpoint.addr.candidates();
    if candidates.contains(&policy.api_bind) {
        return Some("the resolver's own API".to_owned());
    }
    let adapter = policy.adapters.iter().find(|a| a.bind.is_some_and(|bind| candidates.contains(&bind)));
    adapter.map(|adapter| format!("adapter for {}", adapter.service))
}

/// Units of this host whose declared file is not there.
fn missing_units(document: &Document, me: &TargetName) -> Vec<Divergence> {
    let targets = document.section("targets").and_then(Value::as_array).into_iter().flatten();
    let mine = targets.filter(|t| t.get("name").and_then(Value::as_str) == Some(me.as_str()));
    let units = mine.flat_map(|t| t.get("services").and_then(Value::as_array).into_iter().flatten());
    let text = |unit: &Value, key: &str| unit.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    units
        .map(|unit| (text(unit, "name"), text(unit, "path")))
        .filter(|(_, path)| path.starts_with('/') && !Path::new(path).exists())
        .map(|(name, path)| Divergence {
            finding: "missing-plist",
            subject: name,
            detail: format!("{me} declares its unit file at {path}, and there is none"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::validate::validate;

    fn registry(endpoint: u16) -> Document {
        let text = format!(
            r#"{{"schema_version":2,"targets":[{{"name":"control","kind":"local","release_platform":"linux-amd64",
              "ssh":"ops@192.0.2.10","services":[{{"name":"web","path":"/nonexistent/web.service"}}],
              "service_resolver":{{"api_bind":"127.0.0.1:17600","refresh_seconds":5,"max_stale_seconds":15,
                "adapters":[{{"service":"web","consumer":"shop","bind":"127.0.0.1:17601"}}]}}}}],
            "service_directory":{{"authority":{{"target":"control","command":"/opt/stado"}},"generation":1,"services":{{
              "web":{{"managed_service":"web","active_host":"control",
                "endpoints":{{"control":{{"url":"http://127.0.0.1:{endpoint}"}}}},
                "consumers":{{"shop":{{"capabilities":[]}}}}}}}}}}}}"#
        );
        Document::parse(text.into_bytes()).unwrap()
    }
    fn details(endpoint: u16) -> Vec<String> {
        let valid = validate(registry(endpoint)).unwrap();
        self_references(&valid.document, &valid.registry).into_iter().map(|d| d.detail).collect()
    }

    #[test]
    fn an_endpoint_that_is_the_hosts_own_resolver_is_found() {
        // Fleet contract §8, failure 25: an adapter on a service's own port.
        let tail = "on that same target: the adapter would proxy to itself";
        let place = "service_directory.services.web.endpoints.control is 127.0.0.1";
        assert_eq!(details(17601), [format!("{place}:17601, which is adapter for web {tail}")]);
        assert_eq!(details(17600), [format!("{place}:17600, which is the resolver's own API {tail}")]);
        assert!(details(8080).is_empty());
    }

    #[test]
    fn a_unit_without_its_file_is_found_on_its_host() {
        let found = missing_units(&registry(8080), &"control".parse().unwrap());
        assert_eq!((found[0].finding, found[0].subject.as_str()), ("missing-plist", "web"));
        assert!(missing_units(&registry(8080), &"other".parse().unwrap()).is_empty());
    }
}
