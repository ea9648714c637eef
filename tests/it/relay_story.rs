//! The road between hosts as people meet it: the multiplex where the far side runs Stado, and changes told as they are
//! stored.
use crate::support::PATIENCE;
use crate::support::fleet::{Fleet, Host};
use crate::support::home::STADO;
use crate::support::tcp::{ask, echo};
use crate::support::wait_until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// What the daemon of `host` says of its way to another.
fn link(host: &Host, to: &str) -> Value {
    let state = host.published();
    let links = state["links"].as_array().cloned().unwrap_or_default();
    links.into_iter().find(|link| link["host"] == to).unwrap_or_default()
}

fn carrier(host: &Host, to: &str, carrier: &str) -> Value {
    wait_until(&format!("streams to {to} are said to take {carrier}"), PATIENCE, || {
        link(host, to)["carrier"] == carrier
    });
    link(host, to)
}

/// Answers nothing and resets each connection once it has heard something.
fn resetting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1]);
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        }
    });
    port
}

#[test]
fn streams_take_the_multiplex_where_stado_runs_and_a_reset_arrives_as_one() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "data", "desk"]);
    fleet.declare("data", "stado_command", json!(STADO));
    fleet.service("orders", "data", "tcp", echo("orders").port(), "shop");
    fleet.service("rude", "data", "tcp", resetting(), "shop");
    fleet.service("notes", "authority", "tcp", echo("notes").port(), "shop");
    let [orders, rude, notes] = ["orders", "rude", "notes"].map(|name| fleet.adapter("desk", name, "shop"));
    fleet.up();
    assert_eq!(ask(("127.0.0.1", orders), "1").as_deref(), Some("orders:1"));
    assert_eq!(ask(("127.0.0.1", notes), "1").as_deref(), Some("notes:1"));
    let mut client = TcpStream::connect(("127.0.0.1", rude)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"x").unwrap();
    let error = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

    let desk = fleet.host("desk");
    assert_eq!(carrier(desk, "data", "multiplex")["path"], "primary");
    // The authority's logins find no `stado` on their PATH.
    let plain = carrier(desk, "authority", "direct-tcpip");
    assert!(plain["reason"].as_str().unwrap().contains("`stado resolver relay` there gave no multiplex"), "{plain}");
    wait_until("both round trips are shown", PATIENCE, || {
        ["data", "authority"].into_iter().all(|to| link(desk, to)["rtt_us"].as_u64().is_some_and(|rtt| rtt > 0))
    });
    let text = desk.home.stado(&["resolver", "status"]).stdout;
    assert!(
        text.contains("\nlink data multiplex path=primary") && text.contains("\nlink authority direct-tcpip"),
        "{text}"
    );
}

#[test]
fn a_relay_carries_only_what_the_directory_places_there() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["data"]);
    let placed = echo("placed").port();
    fleet.service("orders", "data", "tcp", placed, "shop");
    fleet.push("data").ok();
    let data = fleet.host("data");
    let (elsewhere, home) = (echo("elsewhere").port(), &data.home);
    // The static table of HPACK: 200 and 404.
    for (port, status) in [(placed, 0x88), (elsewhere, 0x8d)] {
        assert_eq!(far_answer(home.command(STADO, &["resolver", "relay"]), port), status);
    }
    let by_hand = home.command(STADO, &["resolver", "relay"]).stdin(std::fs::File::open("/dev/null").unwrap()).output();
    let by_hand = by_hand.unwrap();
    assert_eq!(by_hand.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains("is run by other hosts over SSH"));
}

/// Speaks recorded bytes of version 1 to today's far side: preamble, settings, one CONNECT. The first byte of the header
/// block that answers it.
fn far_answer(mut command: std::process::Command, port: u16) -> u8 {
    use std::process::Stdio;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let authority = format!("127.0.0.1:{port}");
    // :method CONNECT and :authority as literals without indexing (RFC 7541 §6.2.2).
    let mut block = b"\x02\x07CONNECT\x01".to_vec();
    block.push(u8::try_from(authority.len()).unwrap());
    block.extend_from_slice(authority.as_bytes());
    let mut frames = b"stado-relay 1\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frames.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    frames.extend_from_slice(&[0, 0, u8::try_from(block.len()).unwrap(), 1, 4, 0, 0, 0, 1]);
    frames.extend_from_slice(&block);
    input.write_all(&frames).unwrap();
    let mut hello = [0; 14];
    output.read_exact(&mut hello).unwrap();
    assert_eq!(&hello, b"stado-relay 1\n");
    // Frames, up to the HEADERS of stream 1.
    let answer = loop {
        let mut head = [0; 9];
        output.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        output.read_exact(&mut payload).unwrap();
        if head[3] == 1 {
            break payload[0];
        }
    };
    drop(input);
    assert!(child.wait().unwrap().success(), "it ends with its input");
    answer
}

#[test]
fn a_change_is_applied_when_it_is_stored_and_not_with_the_next_tick() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "desk"]);
    let [before, after] = ["before", "after"].map(|word| echo(word).port());
    fleet.service("notes", "authority", "tcp", before, "shop");
    let port = fleet.adapter("desk", "notes", "shop");
    // The next tick of either host is an hour away.
    fleet.refresh_every(3600);
    fleet.up();
    assert_eq!(ask(("127.0.0.1", port), "1").as_deref(), Some("before:1"));
    for name in ["authority", "desk"] {
        wait_until(&format!("{name} watches"), PATIENCE, || fleet.host(name).status().1["changes"] == "watched");
    }
    let commands = |fleet: &mut Fleet| {
        fleet.host("authority").sshd.as_ref().unwrap().log().matches("Starting session: command").count()
    };
    let before = commands(&mut fleet);
    fleet.moved("notes", after);
    fleet.push("authority").ok();
    for name in ["authority", "desk"] {
        fleet.host(name).holds(2);
    }
    assert_eq!(commands(&mut fleet), before, "the change itself was told: nothing was run to read it");
    assert_eq!(ask(("127.0.0.1", port), "2").as_deref(), Some("after:2"));
}
