//! What the directory says of this host's publications, against what its mesh has: what is to be written, and what is worth
//! saying. Pure.
use super::Policy;
use jiff::Timestamp;
use stado_fleet::edit::bridge::{NewPublication, Resting};
use stado_fleet::name::Endpoint;
use std::collections::BTreeSet;
use std::time::Duration;

/// A service without a backend for longer than that is said to be gone.
pub const LONG: Duration = Duration::from_secs(3600);

/// A service of this host's mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Name.
    pub name: String,
    /// Its stable frontend; `None` while it has none that other hosts could dial.
    pub endpoint: Option<Endpoint>,
    /// Hostname, for an http service.
    pub hostname: Option<String>,
    /// What it speaks.
    pub app_protocol: String,
    /// Why it has no backend, and since when; `None` while it has one.
    pub absent: Option<(String, Timestamp)>,
    /// Whether its container asks to be published.
    pub asks: bool,
}

/// What [`plan`] reads.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// This host.
    pub host: &'a str,
    /// What the directory says it publishes.
    pub published: &'a [Resting],
    /// Its mesh.
    pub mesh: &'a [Local],
    /// What its containers may do.
    pub policy: &'a Policy,
    /// The moment.
    pub now: Timestamp,
}

/// What follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Publications to write, one change each.
    pub writes: Vec<NewPublication>,
    /// What is worth saying.
    pub warnings: Vec<String>,
    /// Names whose containers ask in vain to be published.
    pub withheld: BTreeSet<String>,
}

/// Compares the two.
pub fn plan(inputs: &Inputs<'_>) -> Plan {
    let mut plan = Plan::default();
    for publication in inputs.published {
        let local = inputs.mesh.iter().find(|local| local.name == publication.mesh);
        keep(inputs, publication, local, &mut plan);
    }
    // A container that has ended asks for nothing any more.
    let asking = inputs.mesh.iter().filter(|local| local.asks && local.absent.is_none());
    for local in asking.filter(|local| !inputs.published.iter().any(|publication| publication.mesh == local.name)) {
        begin(inputs, local, &mut plan);
    }
    plan
}

fn keep(inputs: &Inputs<'_>, publication: &Resting, local: Option<&Local>, plan: &mut Plan) {
    let Resting { service, mesh, .. } = publication;
    let host = inputs.host;
    let back = format!("take it back with `stado service unpublish {service}`");
    let Some(local) = local else {
        plan.warnings.push(format!(
            "{service} is published as {mesh} of {host}, and this mesh knows no {mesh}; start it, publish it under its new \
             name, or {back}"
        ));
        return;
    };
    if let Some((reason, since)) = &local.absent
        && inputs.now.duration_since(*since).unsigned_abs() > LONG
    {
        let since = shown(*since);
        plan.warnings.push(format!(
            "{service} is published, and {mesh} has had no backend since {since} ({reason}); start it, or {back}"
        ));
    }
    let Some(endpoint) = local.endpoint else { return };
    let hostname = local.hostname.clone().unwrap_or_default();
    // What was registered before a restart is not known until its producer is back.
    let described =
        local.absent.is_some() || (hostname == publication.hostname && local.app_protocol == publication.app_protocol);
    if publication.endpoint != Some(endpoint) || !described {
        let mut new = publication_of(inputs, service, local, endpoint);
        if local.absent.is_some() {
            new.hostname = Some(publication.hostname.clone()).filter(|host| !host.is_empty());
            new.app_protocol.clone_from(&publication.app_protocol);
        }
        plan.writes.push(new);
    }
}

fn begin(inputs: &Inputs<'_>, local: &Local, plan: &mut Plan) {
    let name = &local.name;
    if !inputs.policy.labels {
        plan.withheld.insert(name.clone());
    } else if let Some(endpoint) = local.endpoint {
        let new = publication_of(inputs, name, local, endpoint);
        plan.writes.push(NewPublication { consumers: inputs.policy.consumers.clone(), ..new });
    }
}

fn publication_of(inputs: &Inputs<'_>, service: &str, local: &Local, endpoint: Endpoint) -> NewPublication {
    NewPublication {
        service: service.to_owned(),
        host: inputs.host.to_owned(),
        mesh: local.name.clone(),
        endpoint,
        hostname: local.hostname.clone(),
        app_protocol: local.app_protocol.clone(),
        consumers: Vec::new(),
        standby: false,
        at: shown(inputs.now),
    }
}

/// To the second, as people read it.
pub(super) fn shown(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn local(port: u16) -> Local {
        Local {
            name: "checkout.postgres".into(),
            endpoint: Some(format!("tcp://127.0.0.1:{port}").parse().unwrap()),
            hostname: None,
            app_protocol: "postgres".into(),
            absent: None,
            asks: false,
        }
    }

    fn resting(port: u16) -> Resting {
        Resting {
            service: "orders".into(),
            mesh: "checkout.postgres".into(),
            endpoint: Some(format!("tcp://127.0.0.1:{port}").parse().unwrap()),
            active: true,
            hostname: String::new(),
            app_protocol: "postgres".into(),
        }
    }

    fn planned(published: &[Resting], mesh: &[Local], policy: &Policy) -> Plan {
        let now = at("2026-12-01T12:00:00Z");
        plan(&Inputs { host: "desk", published, mesh, policy, now })
    }

    #[test]
    fn what_is_true_is_left_alone_and_a_new_port_is_written() {
        let off = Policy::default();
        assert_eq!(planned(&[resting(1)], &[local(1)], &off), Plan::default());
        let moved = planned(&[resting(1)], &[local(2)], &off);
        assert!(moved.warnings.is_empty());
        let [write] = &moved.writes[..] else { panic!("{moved:?}") };
        assert_eq!((write.service.as_str(), write.endpoint.addr.port, write.consumers.len()), ("orders", 2, 0));
        let grpc = Local { app_protocol: "grpc".into(), ..local(1) };
        assert_eq!(planned(&[resting(1)], &[grpc], &off).writes[0].app_protocol, "grpc");
        let none = Local { endpoint: None, ..local(2) };
        assert_eq!(planned(&[resting(1)], &[none], &off), Plan::default());
    }

    #[test]
    fn a_service_without_a_backend_is_said_when_that_lasts_and_keeps_its_description() {
        let off = Policy::default();
        let gone = |since: &str, port| Local {
            absent: Some(("its container is gone".into(), at(since))),
            app_protocol: String::new(),
            ..local(port)
        };
        assert_eq!(planned(&[resting(1)], &[gone("2026-12-01T11:30:00Z", 1)], &off), Plan::default());
        let long = planned(&[resting(1)], &[gone("2026-12-01T10:30:00Z", 1)], &off);
        assert_eq!(
            long.warnings,
            [
                "orders is published, and checkout.postgres has had no backend since 2026-12-01T10:30:00Z (its container \
              is gone); start it, or take it back with `stado service unpublish orders`"
            ]
        );
        assert!(long.writes.is_empty());
        let moved = planned(&[resting(1)], &[gone("2026-12-01T11:59:00Z", 2)], &off);
        assert_eq!(moved.writes[0].app_protocol, "postgres");
        let unknown = planned(&[resting(1)], &[], &off);
        assert!(unknown.warnings[0].contains("this mesh knows no checkout.postgres; "), "{unknown:?}");
    }

    #[test]
    fn a_label_publishes_only_where_the_host_lets_it() {
        let asks = Local { asks: true, ..local(7) };
        let refused = planned(&[], std::slice::from_ref(&asks), &Policy::default());
        assert!(refused.writes.is_empty());
        assert_eq!(refused.withheld, ["checkout.postgres".to_owned()].into());
        let by_hand = Resting { service: "checkout.postgres".into(), ..resting(7) };
        assert_eq!(planned(&[by_hand], std::slice::from_ref(&asks), &Policy::default()), Plan::default());
        let on = Policy { labels: true, consumers: vec!["lap".into()] };
        let written = planned(&[], std::slice::from_ref(&asks), &on);
        assert!(written.warnings.is_empty());
        let [write] = &written.writes[..] else { panic!("{written:?}") };
        assert_eq!(
            (write.service.as_str(), &write.consumers, write.standby),
            ("checkout.postgres", &on.consumers, false)
        );
        let ended = Local { absent: Some(("it ended".into(), at("2026-12-01T11:59:00Z"))), ..asks.clone() };
        assert_eq!(planned(&[], &[ended], &on), Plan::default());
        let done = Resting { service: "checkout.postgres".into(), ..resting(7) };
        assert_eq!(planned(&[done], &[asks], &on), Plan::default());
    }
}
