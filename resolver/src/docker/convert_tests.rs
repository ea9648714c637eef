use super::*;

fn read<T: serde::de::DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap()
}

#[test]
fn an_inspection_of_docker_is_read() {
    let answer: ContainerInspectResponse = read(
        r#"{"Id":"c0ffee","Name":"/it-db-1","State":{"Status":"running","Running":true,"Paused":false,
        "StartedAt":"2026-11-30T13:48:15.99218Z","Health":{"Status":"unhealthy","FailingStreak":4,
        "Log":[{"ExitCode":1,"Output":"first"},{"ExitCode":1,"Output":"\n no response \nsecond"}]}},
        "HostConfig":{"NetworkMode":"default"},"Config":{"Labels":{"a":"b"}},
        "NetworkSettings":{"Ports":{"5432/tcp":[{"HostIp":"127.0.0.1","HostPort":"32768"}],"9/udp":null}}}"#,
    );
    let container = container(answer);
    assert_eq!((container.id.as_str(), container.name.as_str()), ("c0ffee", "it-db-1"));
    assert_eq!(container.started_at, Some("2026-11-30T13:48:15.99218Z".parse().unwrap()));
    assert_eq!(container.phase, Phase::Running);
    assert_eq!(container.health, Some(Health::Unhealthy { streak: 4, output: "no response".into() }));
    assert_eq!(container.ports["5432/tcp"], [Binding { ip: "127.0.0.1".into(), port: "32768".into() }]);
    assert!(container.ports["9/udp"].is_empty() && container.shared_network.is_none());
}

#[test]
fn an_inspection_with_hardly_anything_in_it_is_read_too() {
    let stopped = container(read("{}"));
    assert_eq!(stopped.phase, Phase::Stopped);
    let podman = container(read(r#"{"Id":"x","State":{"Running":true},"HostConfig":{"NetworkMode":"host"}}"#));
    assert_eq!((podman.phase, podman.shared_network.as_deref()), (Phase::Running, Some("host")));
}

#[test]
fn a_digest_changes_with_what_matters_and_not_with_the_minutes() {
    let digest = |status: &str, port: u16| {
        let json = format!(
            r#"{{"Id":"x","Names":["/a"],"State":"running","Status":"{status}",
            "Ports":[{{"IP":"127.0.0.1","PrivatePort":80,"PublicPort":{port},"Type":"tcp"}}]}}"#
        );
        listed(read(&json)).unwrap().digest
    };
    assert_eq!(digest("Up 5 minutes", 1), digest("Up 6 minutes", 1));
    assert_ne!(digest("Up 5 minutes", 1), digest("Up 5 minutes", 2));
    assert_ne!(digest("Up 5 minutes (healthy)", 1), digest("Up 5 minutes (unhealthy)", 1));
}

#[test]
fn events_of_containers_and_networks_are_read_and_others_left() {
    let read_event = |json: &str| event(read(json));
    let died = read_event(
        r#"{"Type":"container","Action":"die","Actor":{"ID":"c1","Attributes":{"name":"a","io.devmesh.enable":"true"}},
        "time":1700000000,"timeNano":1700000000123456789}"#,
    );
    let died = died.unwrap();
    assert_eq!((died.container.as_str(), died.what), ("c1", What::Ended("died")));
    assert_eq!(died.at.unwrap().as_nanosecond(), 1_700_000_000_123_456_789);
    assert_eq!(died.attributes["io.devmesh.enable"], "true");
    let network = read_event(
        r#"{"Type":"network","Action":"connect","Actor":{"ID":"n","Attributes":{"container":"c2","name":"bridge"}}}"#,
    );
    let network = network.unwrap();
    assert_eq!((network.container.as_str(), network.what), ("c2", What::Changed));
    assert!(network.attributes.is_empty());
    let health = r#"{"Type":"container","Action":"health_status: healthy","Actor":{"ID":"c3"}}"#;
    assert_eq!(read_event(health).unwrap().what, What::Changed);
    for other in [
        r#"{"Type":"container","Action":"exec_start: true","Actor":{"ID":"c"}}"#,
        r#"{"Type":"network","Action":"create","Actor":{"ID":"n"}}"#,
        r#"{"Type":"image","Action":"pull","Actor":{"ID":"i"}}"#,
        r#"{"Type":"container","Action":"start"}"#,
    ] {
        assert!(read_event(other).is_none(), "{other}");
    }
}
