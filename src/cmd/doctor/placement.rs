//! `placement`: what is placed here answers here, and what is placed elsewhere does not.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::cmd::resolver::all_listen;
use stado_fleet::authority::Answer;
use stado_fleet::document::{Document, Registry};
use stado_fleet::name::{Endpoint, TargetName};
use std::net::SocketAddr;

pub(super) const ABOUT: (&str, &str) = ("placement", "Placement");

/// A port of this host, and what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    service: String,
    /// Where it is placed.
    host: String,
    here: bool,
    port: u16,
    at: Vec<SocketAddr>,
}

/// A row for each service that is not as it should be, else one for all.
pub(super) async fn checks(fleet: &Fleet, answer: Option<&Answer>) -> Vec<Check> {
    let Some(answer) = answer else { return vec![Check::skip(ABOUT, "the registry could not be read")] };
    let valid = &answer.snapshot.valid;
    let me = match fleet.me(&valid.registry) {
        Ok(Some(me)) => me,
        Ok(None) => return vec![Check::skip(ABOUT, "this host is no target of the registry")],
        Err(failure) => {
            return vec![Check::fail(ABOUT, failure.message, "Say who this host is with STADO_TARGET.")];
        }
    };
    let expected = expected(&valid.registry, &valid.document, &me);
    let api = fleet.publisher().ok().and_then(|publisher| publisher.api());
    let answered = all_listen(expected.iter().flat_map(|e| e.at.iter().copied().map(Some)).collect(), api).await;
    let mut answered = answered.into_iter();
    let judged: Vec<(&Expected, bool)> = expected
        .iter()
        .map(|e| (e, answered.by_ref().take(e.at.len()).filter(|listens| *listens == Some(true)).count() > 0))
        .collect();
    judge(&judged)
}

fn judge(judged: &[(&Expected, bool)]) -> Vec<Check> {
    let wrong: Vec<Check> = judged.iter().filter_map(|(expected, answers)| wrong(expected, *answers)).collect();
    if !wrong.is_empty() {
        return wrong;
    }
    let here = judged.iter().filter(|(expected, _)| expected.here).count();
    let elsewhere = judged.len() - here;
    vec![Check::ok(
        ABOUT,
        format!("{here} service(s) placed here answer; {elsewhere} placed elsewhere with a place here do not"),
    )]
}

fn wrong(expected: &Expected, answers: bool) -> Option<Check> {
    let Expected { service, host, port, .. } = expected;
    match (expected.here, answers) {
        (true, false) => Some(Check::fail(
            ABOUT,
            format!("{service} is placed here and nothing answers port {port}"),
            format!("Start {service} here, or move it to a host that runs it."),
        )),
        (false, true) => Some(Check::fail(
            ABOUT,
            format!("{service} is placed on {host}, and port {port} answers here"),
            format!("Stop {service} here: it must run on {host} alone."),
        )),
        _ => None,
    }
}

/// What is placed here by its endpoint; of what is placed elsewhere, the address at which this host would serve it after a
/// move. A service that is being moved, and a socket of this host's own resolver, say nothing.
fn expected(registry: &Registry, document: &Document, me: &TargetName) -> Vec<Expected> {
    let Some(directory) = &registry.directory else { return Vec::new() };
    let own = own_sockets(registry, me);
    let mut all = Vec::new();
    for (name, service) in &directory.services {
        if registry.transaction_over(name, service).is_some() {
            continue;
        }
        let here = service.active_host == *me;
        // Only the endpoints of a profile are places to serve at; others may be how this host reaches the service.
        let own_place = service.endpoints.get(me).copied().filter(|_| here || service.placement_profile.is_some());
        let Some(endpoint) = own_place.or_else(|| standby(document, name.as_str(), me)) else { continue };
        let at = endpoint.addr.candidates();
        if !here && at.iter().any(|addr| own.contains(addr)) {
            continue;
        }
        let host = service.active_host.to_string();
        all.push(Expected { service: name.to_string(), host, here, port: endpoint.addr.port, at });
    }
    all
}

fn standby(document: &Document, service: &str, me: &TargetName) -> Option<Endpoint> {
    let services = document.section("service_directory")?.get("services")?;
    services.get(service)?.get("standby")?.get(me.as_str())?.get("url")?.as_str()?.parse().ok()
}

fn own_sockets(registry: &Registry, me: &TargetName) -> Vec<SocketAddr> {
    let policy = registry.targets.get(me).and_then(|target| target.resolver.as_ref());
    let adapters = policy.into_iter().flat_map(|policy| &policy.adapters);
    policy.map(|policy| policy.api_bind).into_iter().chain(adapters.filter_map(|adapter| adapter.bind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use stado_fleet::validate::validate;

    fn expected_on(host: &str, change: impl Fn(&mut Value)) -> Vec<(String, bool, u16)> {
        let unit = |name: &str| json!({"name": name});
        let target = |name: &str, last: u8, adapters: Value| {
            json!({
                "name": name, "kind": "local", "release_platform": "linux-amd64", "ssh": format!("ops@192.0.2.{last}"),
                "services": [unit("web")],
                "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15,
                                     "adapters": adapters}
            })
        };
        let adapters = json!([{"service": "web", "consumer": "shop", "bind": "127.0.0.1:8080"}]);
        let mut value = json!({
            "schema_version": 2,
            "targets": [target("control", 1, json!([])), target("worker", 2, adapters), target("spare", 3, json!([]))],
            "service_directory": {
                "authority": {"target": "control", "command": "/opt/stado"}, "generation": 1,
                "services": {"web": {
                    "managed_service": "web", "active_host": "control",
                    "endpoints": {"control": {"url": "http://127.0.0.1:8080"}},
                    "standby": {"worker": {"url": "http://127.0.0.1:8080"}, "spare": {"url": "http://127.0.0.1:8081"}},
                    "consumers": {"shop": {"capabilities": []}}
                }}
            }
        });
        change(&mut value);
        let valid = validate(Document::from_value(value)).unwrap();
        let all = expected(&valid.registry, &valid.document, &host.parse().unwrap());
        all.into_iter().map(|e| (e.service, e.here, e.port)).collect()
    }

    #[test]
    fn a_service_answers_on_its_host_and_nowhere_else() {
        assert_eq!(expected_on("control", |_| {}), [("web".into(), true, 8080)]);
        assert_eq!(expected_on("spare", |_| {}), [("web".into(), false, 8081)]);
        assert_eq!(expected_on("worker", |_| {}), [], "that port is the host's own adapter");
        let another = |value: &mut Value| {
            value["targets"][1]["service_resolver"]["adapters"] = json!([]);
        };
        assert_eq!(expected_on("worker", another), [("web".into(), false, 8080)]);
    }

    #[test]
    fn an_address_at_which_a_host_only_reaches_the_service_is_no_place() {
        let reached = |value: &mut Value| {
            let web = &mut value["service_directory"]["services"]["web"];
            web["endpoints"]["spare"] = json!({"url": "http://127.0.0.1:9000"});
            web["standby"] = json!({});
        };
        assert_eq!(expected_on("spare", reached), []);
    }

    #[test]
    fn the_sentences_are_the_contracts() {
        let at = |here| Expected { service: "web".into(), host: "control".into(), here, port: 80, at: Vec::new() };
        let detail = |here, answers| judge(&[(&at(here), answers)])[0].detail.clone();
        assert_eq!(detail(true, false), "web is placed here and nothing answers port 80");
        assert_eq!(detail(false, true), "web is placed on control, and port 80 answers here");
        let fine = judge(&[(&at(true), true), (&at(false), false)]);
        assert_eq!((fine.len(), fine[0].status), (1, super::super::report::Status::Ok));
    }
}
