//! Containers that are not served, and engines that are not there: with an engine that only tells.
use super::engine::{Container, Engine};
use super::said::Said;
use super::{Book, Group, HOST, Situation};
use crate::support::home::{DEVMESHD, Home};
use crate::support::ports;
use crate::support::process::Process;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::os::unix::net::UnixListener;

const TEST: &str = "what_is_said_of_containers_and_engines_names_them_everywhere";

/// One row; where the container's part of the table is asked is the same for all.
const fn row(
    id: &'static str,
    broken: &'static str,
    hop: &'static str,
    sentence: &'static str,
    cause: &'static str,
    next: &'static str,
) -> Situation {
    Situation { id, broken, hop, sentence, cause, next, places: HOST }
}

pub const CONTAINERS: Group = Group {
    title: "Containers and their engine",
    shown: Ok(TEST),
    rows: &[
        row(
            "engine-ended",
            "The engine has ended",
            "engine",
            "the engine at …is not running: its socket is there and nobody answers",
            "it was stopped, and its socket stayed",
            "start it",
        ),
        row(
            "engine-gone",
            "No engine is there",
            "engine",
            "the engine at …is not there: is one installed and running?",
            "it is not installed, or its socket is elsewhere",
            "start it, or set `DOCKER_HOST`; what is known is served meanwhile",
        ),
        row(
            "container-paused",
            "The container is paused",
            "container",
            "container …is paused",
            "somebody paused it",
            "`docker unpause`",
        ),
        row(
            "container-ended",
            "The container has ended",
            "container",
            "container …",
            "it was stopped, or its program ended",
            "`docker logs` says why; start it again, and the address is the same",
        ),
        row(
            "container-unhealthy",
            "The container's health check fails",
            "container",
            "unhealthy",
            "with `follow-health` it is served only while its check says healthy",
            "see the check's output, which is told",
        ),
        row(
            "container-unpublished",
            "Its port is not published",
            "container",
            "is labeled for devmesh but 80/tcp is not published to the host",
            "`ports:` is missing",
            "`ports: \"127.0.0.1::80\"`",
        ),
        row(
            "container-open",
            "Its port is published to the whole network",
            "container",
            "publishes 80/tcp on 0.0.0.0, which is not loopback-only",
            "`ports: \"80\"` publishes on every address",
            "publish it on 127.0.0.1, or allow it by configuration",
        ),
        row(
            "container-host-network",
            "It runs in the host's network",
            "container",
            "it runs in the network of host",
            "`network_mode: host` publishes nothing",
            "give it a network of its own, or register the port",
        ),
        row(
            "container-bad-label",
            "One of its labels is wrong",
            "container",
            "invalid io.devmesh.container-port=\"eighty\"",
            "a typing error",
            "correct the label and recreate the container",
        ),
        row(
            "container-superseded",
            "Two containers of one owner run",
            "container",
            "is superseded by /container-newer",
            "an old one was left running",
            "stop the one that is not wanted",
        ),
        row(
            "container-owned",
            "Another owner has the name",
            "container",
            "is already owned by",
            "two projects use one name",
            "another name for one of them",
        ),
    ],
};

fn published(ip: &str, port: u16) -> Value {
    json!({"80/tcp": [{"HostIp": ip, "HostPort": port.to_string()}]})
}

fn serve(home: &Home) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled"]);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

/// What is said of containers: the list of the refused, and of each service.
fn asked(home: &Home, service: Option<&str>) -> Said {
    let text = home.stado(&["service", "list", "--refused"]);
    let json = home.stado(&["service", "list", "--refused", "--format", "json"]);
    let mut said = text.stdout + &text.stderr;
    let mut value =
        json!({"refused": serde_json::from_str::<Value>(&json.stdout).unwrap_or_default(), "engine": json.stderr});
    if let Some(name) = service {
        let inspected = home.stado(&["service", "inspect", name]);
        said.push_str(&(inspected.stdout + &inspected.stderr));
        let api = stado::client::Api::new(home.file(".devmesh/run/devmesh.sock"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        value["service"] = runtime.block_on(api.inspect(name)).map_or(Value::Null, |found| json!(found));
    }
    Said { status: Some(said), json: Some(value), ..Said::default() }
}

#[test]
fn what_is_said_of_containers_and_engines_names_them_everywhere() {
    let book = Book::of(&[&CONTAINERS]);
    let mut home = Home::new();
    let socket = home.file("engine.sock");
    home.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    drop(UnixListener::bind(&socket).unwrap());
    let daemon = serve(&home);
    let check = |home: &Home, id: &str, service: Option<&str>| {
        book.watch(id, |_| asked(home, service));
    };
    check(&home, "engine-ended", None);
    std::fs::remove_file(&socket).unwrap();
    check(&home, "engine-gone", None);

    let engine = Engine::start(&socket);
    let backends = ports::block(2);
    let labels = |name: &'static str| [(".enable", "true"), (".name", name), (".container-port", "80")];
    let run = |name: &str, labels: &[(&str, &str)], ports: Value, network: &str, health: Option<&str>| {
        engine.run(&Container { name, labels, state: "running", ports, network, health });
    };
    let here = || published("127.0.0.1", backends.port());
    run("container-paused", &labels("paused"), here(), "bridge", None);
    run("container-ended", &labels("ended"), here(), "bridge", None);
    let followed = [&labels("followed")[..], &[(".follow-health", "true")]].concat();
    run("container-unhealthy", &followed, here(), "bridge", Some("unhealthy"));
    run("container-unpublished", &labels("unpublished"), json!({"80/tcp": null}), "bridge", None);
    run("container-open", &labels("open"), published("0.0.0.0", backends.port()), "bridge", None);
    run("container-host-network", &labels("host-network"), json!({}), "host", None);
    let wrong = [(".enable", "true"), (".name", "bad"), (".container-port", "eighty")];
    run("container-bad-label", &wrong, here(), "bridge", None);
    let composed =
        [&labels("composed")[..], &[("com.docker.compose.project", "it"), ("com.docker.compose.service", "web")]]
            .concat();
    run("container-superseded", &composed, here(), "bridge", None);
    run("container-newer", &composed, published("127.0.0.1", backends.last()), "bridge", None);
    run("container-first", &labels("taken"), here(), "bridge", None);
    run("container-owned", &labels("taken"), here(), "bridge", None);
    wait_until("the container is served", PATIENCE, || {
        ["paused", "ended"].iter().all(|name| home.devmesh(&["services", "resolve", name, "--raw"]).code == 0)
    });
    engine.set("container-paused", "paused");
    engine.end("container-ended");
    for row in &CONTAINERS.rows[2..] {
        let service = match row.id {
            "container-paused" => Some("paused"),
            "container-ended" => Some("ended"),
            "container-unhealthy" => Some("followed"),
            _ => None,
        };
        check(&home, row.id, service);
    }
    assert!(daemon.stop().success());
    book.close();
}
