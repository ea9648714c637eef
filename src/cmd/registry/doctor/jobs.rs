//! What is asked for and nowhere given: capabilities of grants, hosts of coordinators.
use super::{Divergence, named, text};
use serde_json::Value;
use stado_fleet::document::Document;

/// Grants that hand on a capability which the service does not give their consumer.
pub(super) fn unsatisfied_grants(document: &Document) -> Vec<Divergence> {
    let services = document.value().pointer("/service_directory/services").and_then(Value::as_object);
    let mut found = Vec::new();
    for (service, entry) in services.into_iter().flatten() {
        for (consumer, declared) in entry.get("consumers").and_then(Value::as_object).into_iter().flatten() {
            let has: Vec<&str> = texts(declared, "capabilities").collect();
            for grant in declared.get("grants").and_then(Value::as_array).into_iter().flatten() {
                for lacking in texts(grant, "capabilities").filter(|capability| !has.contains(capability)) {
                    let to = text(grant, "consumer");
                    found.push(Divergence {
                        finding: "capability-unsatisfied",
                        subject: service.clone(),
                        detail: format!(
                            "{consumer} grants {to} the capability {lacking:?} of {service}, which {consumer} itself is not given"
                        ),
                        remedy: format!(
                            "add {lacking:?} to service_directory.services.{service}.consumers.{consumer}.capabilities, or \
                             take it out of the grant"
                        ),
                    });
                }
            }
        }
    }
    found
}

fn texts<'v>(entry: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    entry.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Active coordinators that no host runs: the one they name is no target, or none answers to what they look for.
pub(super) fn unplaced(document: &Document) -> Vec<Divergence> {
    let active =
        named(document, "coordinators").filter(|(_, c)| c.get("active").and_then(Value::as_bool) != Some(false));
    active.filter_map(|(name, coordinator)| unplaced_one(document, name, coordinator)).collect()
}

fn unplaced_one(document: &Document, name: &str, coordinator: &Value) -> Option<Divergence> {
    let (host, wanted) = (text(coordinator, "host"), text(coordinator, "host_heuristic"));
    let mut targets = named(document, "targets");
    let (detail, remedy) = if !host.is_empty() {
        if targets.any(|(target, _)| target == host) {
            return None;
        }
        let remedy = format!("add the host with `stado registry host add {host}`, or give the coordinator another");
        (format!("coordinator {name} is to run on {host}, which is no target"), remedy)
    } else {
        if wanted.is_empty() || targets.any(|(_, target)| text(target, "host_heuristic") == wanted) {
            return None;
        }
        let remedy = format!("give one target host_heuristic {wanted:?}, or name the coordinator's host");
        (format!("coordinator {name} is to run on a host that is {wanted}, and no target declares that"), remedy)
    };
    Some(Divergence { finding: "job-unplaced", subject: name.to_owned(), detail, remedy })
}
