use super::*;
use crate::docker::labels::Labels;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let base = [("enable", "true"), ("name", "checkout.postgres"), ("container-port", "5432")];
    base.iter().chain(pairs).map(|(key, value)| (format!("io.devmesh.{key}"), (*value).to_owned())).collect()
}

fn container(bindings: &[(&str, &str)]) -> Container {
    let bindings = bindings.iter().map(|(ip, port)| Binding { ip: (*ip).into(), port: (*port).into() }).collect();
    Container {
        id: "c0ffee".into(),
        name: "db".into(),
        phase: Phase::Running,
        labels: labels(&[]),
        ports: [("5432/tcp".to_owned(), bindings)].into(),
        ..Container::default()
    }
}

fn dialled(bindings: &[(&str, &str)], allow: bool) -> Result<String, String> {
    let verdict = judge(&container(bindings), allow);
    match (verdict.claims.first(), verdict.refused.first()) {
        (Some(claim), None) => Ok(claim.backend.addr.to_string()),
        (None, Some(refusal)) => Err(refusal.reason()),
        _ => panic!("{verdict:?}"),
    }
}

#[test]
fn only_loopback_is_served_without_the_flag() {
    assert_eq!(dialled(&[("127.0.0.1", "32768")], false).unwrap(), "127.0.0.1:32768");
    assert_eq!(dialled(&[("::1", "32768")], false).unwrap(), "[::1]:32768");
    assert_eq!(dialled(&[("::1", "1"), ("127.0.0.1", "2")], false).unwrap(), "127.0.0.1:2");
    let refused = |bindings: &[(&str, &str)]| dialled(bindings, false).unwrap_err();
    assert_eq!(refused(&[("0.0.0.0", "1")]), "container /db publishes 5432/tcp on 0.0.0.0, which is not loopback-only");
    assert!(refused(&[("::", "1")]).contains(" on ::,"));
    assert!(refused(&[("", "1")]).contains(" on all addresses,"));
    assert!(refused(&[("127.0.0.1", "1"), ("0.0.0.0", "2")]).contains(" on 0.0.0.0,"), "a mix is refused");
}

#[test]
fn with_the_flag_exposed_ports_are_dialled_on_loopback() {
    assert_eq!(dialled(&[("0.0.0.0", "1"), ("::", "2")], true).unwrap(), "127.0.0.1:1");
    assert_eq!(dialled(&[("", "1")], true).unwrap(), "127.0.0.1:1");
    assert_eq!(dialled(&[("0.0.0.0", "1"), ("127.0.0.1", "2")], true).unwrap(), "127.0.0.1:2");
    assert_eq!(
        dialled(&[("192.0.2.7", "1")], true).unwrap_err(),
        "container /db publishes 5432/tcp on 192.0.2.7 only, which 127.0.0.1 does not reach"
    );
}

#[test]
fn a_port_that_is_not_published_may_be_so_later() {
    for bindings in [&[][..], &[("127.0.0.1", "")][..]] {
        let verdict = judge(&container(bindings), false);
        assert!(verdict.retry && verdict.claims.is_empty());
        assert_eq!(
            verdict.refused[0].reason(),
            "container /db is labeled for devmesh but 5432/tcp is not published to the host"
        );
    }
}

#[test]
fn what_can_never_be_published_is_not_waited_for() {
    let host = Container { shared_network: Some("host".into()), ..container(&[]) };
    let verdict = judge(&host, false);
    assert!(!verdict.retry);
    assert!(verdict.refused[0].reason().ends_with("it runs in the network of host"));
    assert!(verdict.refused[0].remedy().contains("stado service register"));
    let mut udp = container(&[]);
    udp.ports.insert("5432/udp".into(), vec![Binding { ip: "127.0.0.1".into(), port: "1".into() }]);
    assert!(judge(&udp, false).refused[0].reason().contains("5432/udp is, which is not served"));
}

#[test]
fn one_exposed_port_leaves_the_others_served() {
    let mut both = container(&[("0.0.0.0", "1")]);
    both.labels = labels(&[("x.name", "checkout.metrics"), ("x.container-port", "9090")]);
    both.ports.insert("9090/tcp".into(), vec![Binding { ip: "127.0.0.1".into(), port: "9".into() }]);
    let verdict = judge(&both, false);
    assert_eq!(verdict.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>(), ["checkout.metrics"]);
    assert_eq!(verdict.refused.len(), 1);
}

#[test]
fn a_container_that_did_not_opt_in_or_does_not_run_comes_to_nothing() {
    let stopped = Container { phase: Phase::Stopped, ..container(&[("127.0.0.1", "1")]) };
    let mut silent = container(&[]);
    silent.labels.remove("io.devmesh.enable");
    assert_eq!(judge(&stopped, false), Verdict::default());
    assert_eq!(judge(&silent, false), Verdict::default());
}

#[test]
fn health_is_followed_when_asked_and_shown_always_and_pause_holds_always() {
    let held = |phase, health: Option<Health>, follow: &str| {
        let labels = labels(&[("follow-health", follow)]);
        let container = Container { phase, health, labels, ..container(&[("127.0.0.1", "1")]) };
        let claim = judge(&container, false).claims.remove(0);
        (claim.held, claim.health)
    };
    let sick = || Some(Health::Unhealthy { streak: 3, output: "no route".into() });
    assert_eq!(held(Phase::Running, sick(), "false"), (None, Some("unhealthy")));
    assert_eq!(held(Phase::Running, Some(Health::Healthy), "true"), (None, Some("healthy")));
    assert_eq!(held(Phase::Running, None, "true"), (None, None), "no health check: nothing to follow");
    assert_eq!(
        held(Phase::Running, sick(), "true").0.unwrap(),
        "its container db is unhealthy, 3 checks in a row failed: no route"
    );
    assert!(held(Phase::Running, Some(Health::Starting), "true").0.unwrap().contains("starting"));
    assert_eq!(held(Phase::Paused, None, "false").0.unwrap(), "its container db is paused");
}
