//! What services do behind a relay, with both carriers: one that is stopped, and one that moves under a bulk stream.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::process::Process;
use crate::support::tcp::{Client, ask, echo};
use crate::support::{PATIENCE, ports, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// `fast` carries the multiplex, `plain` does not.
fn fleet() -> Fleet {
    let mut fleet = Fleet::on_loopback(&["authority", "fast", "plain", "desk"]);
    fleet.declare("fast", "stado_command", json!(STADO));
    fleet
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A request that is sent; the answer is read later.
fn requested(port: u16) -> TcpStream {
    let mut stream = connect(port);
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

fn answered(mut stream: TcpStream) -> bool {
    let mut text = String::new();
    stream.read_to_string(&mut text).is_ok() && text.starts_with("HTTP/1.1 200 ")
}

/// The object API as a service: a process that can be stopped.
fn service(fleet: &mut Fleet, host: &str, port: u16) -> Process {
    let home = &fleet.host(host).home;
    home.write(".stado/token", "token");
    let notes = json!({"token_file": "~/.stado/token", "prefix_policies": [{"prefix": "", "actions": ["get"]}]});
    home.write(".stado/config.json", json!({"object_api": {"namespaces": {"notes": notes}}}).to_string());
    home.start("service", STADO, &["storage", "serve", "--bind", &format!("127.0.0.1:{port}")])
}

#[test]
fn a_stopped_service_is_told_as_waited_for_holds_no_other_and_answers_when_it_goes_on() {
    needs!("sshd");
    let mut fleet = fleet();
    let mut services = Vec::new();
    let mut adapters = Vec::new();
    let leases = [ports::one(), ports::one()];
    for (host, lease) in ["fast", "plain"].into_iter().zip(&leases) {
        services.push(service(&mut fleet, host, lease.port()));
        fleet.service(&format!("store-{host}"), host, "http", lease.port(), "shop");
        fleet.service(&format!("orders-{host}"), host, "tcp", echo(host).port(), "shop");
        let adapter = |fleet: &mut Fleet, name: &str| fleet.adapter("desk", &format!("{name}-{host}"), "shop");
        adapters.push((host, adapter(&mut fleet, "store"), adapter(&mut fleet, "orders")));
    }
    fleet.up();
    for (_, store, _) in &adapters {
        assert!(answered(requested(*store)));
    }
    services.iter().for_each(|service| service.signal(Signal::STOP));
    let held: Vec<TcpStream> =
        adapters.iter().flat_map(|(_, store, _)| [requested(*store), requested(*store)]).collect();
    let blockers = |fleet: &mut Fleet| -> (i32, String) {
        let (code, status) = fleet.host("desk").status();
        (code, status["blockers"].to_string())
    };
    for (host, store, orders) in &adapters {
        let sentence = format!("service store-{host} for consumer shop at 127.0.0.1:{store} has waited ");
        wait_until(&sentence, PATIENCE, || {
            let (code, said) = blockers(&mut fleet);
            code == 1 && said.contains(&sentence) && said.contains("for the first byte of an answer on an open channel")
        });
        assert_eq!(ask(("127.0.0.1", *orders), "1"), Some(format!("{host}:1")), "another service of that host");
    }
    services.iter().for_each(|service| service.signal(Signal::CONT));
    assert!(held.into_iter().all(answered), "whoever waited has its answer, on the same connection");
    wait_until("nothing is waited for", PATIENCE, || blockers(&mut fleet) == (0, "[]".to_owned()));
}

/// A piece that tells which one it is.
fn piece(n: u64) -> Vec<u8> {
    let mut piece = vec![u8::try_from(n % 251).unwrap(); PIECE];
    piece[..8].copy_from_slice(&n.to_le_bytes());
    piece
}

const PIECE: usize = 64 * 1024;
const PIECES: u64 = 256;

/// Answers `send` with many bytes, `take` with the digest of what comes after it, and any other line with its own word.
fn bulk(word: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(word, stream));
        }
    });
    port
}

fn serve(word: &str, mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let done = match line.trim_end() {
        "send" => (0..PIECES).try_for_each(|n| stream.write_all(&piece(n))),
        "take" => {
            let mut digest = Sha256::new();
            let taken = std::io::copy(&mut reader, &mut digest);
            taken.and_then(|n| write!(stream, "{word} {n} {}", hex::encode(digest.finalize())))
        }
        line => writeln!(stream, "{word}:{line}"),
    };
    let _ = done.and_then(|()| stream.shutdown(Shutdown::Write));
}

/// Places a service on another host, under the next generation.
fn relocate(fleet: &mut Fleet, service: &str, host: &str, port: u16) {
    let targets = fleet.registry["targets"].as_array_mut().unwrap();
    let target = targets.iter_mut().find(|target| target["name"] == host).unwrap();
    target["services"].as_array_mut().unwrap().push(json!({"name": service}));
    let directory = &mut fleet.registry["service_directory"];
    directory["generation"] = Value::from(directory["generation"].as_u64().unwrap() + 1);
    let entry = &mut directory["services"][service];
    entry["active_host"] = json!(host);
    entry["endpoints"] = json!({host: {"url": format!("tcp://127.0.0.1:{port}")}});
}

#[test]
fn a_service_that_moves_under_bulk_streams_ends_none_of_them_and_loses_no_byte() {
    needs!("sshd");
    let mut fleet = fleet();
    let [on_fast, on_plain] = [bulk("fast"), bulk("plain")];
    fleet.service("big", "fast", "tcp", on_fast, "shop");
    let port = fleet.adapter("desk", "big", "shop");
    fleet.up();
    // There and back, so that either carrier is left with streams.
    for (from, to, there) in [("fast", "plain", on_plain), ("plain", "fast", on_fast)] {
        assert_eq!(ask(("127.0.0.1", port), "x"), Some(format!("{from}:x")));
        let (mut down, mut up) = (connect(port), connect(port));
        down.write_all(b"send\n").unwrap();
        up.write_all(b"take\n").unwrap();
        let mut sent = Sha256::new();
        let half = PIECES / 2;
        let mut send = |pieces: std::ops::Range<u64>| {
            for n in pieces {
                let piece = piece(n);
                up.write_all(&piece).unwrap();
                sent.update(&piece);
            }
        };
        let mut got = vec![0; PIECE];
        let mut receive = |pieces: std::ops::Range<u64>| {
            for n in pieces {
                down.read_exact(&mut got).unwrap();
                assert!(got == piece(n), "piece {n} is another one");
            }
        };
        send(0..half);
        receive(0..half);
        relocate(&mut fleet, "big", to, there);
        fleet.push("authority").ok();
        wait_until("new connections lead to the new host", PATIENCE, || {
            Client::connect(("127.0.0.1", port)).ok().and_then(|mut c| c.ask("x")) == Some(format!("{to}:x"))
        });
        send(half..PIECES);
        receive(half..PIECES);

        up.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        up.read_to_string(&mut said).unwrap();
        assert_eq!(said, format!("{from} {} {}", PIECES * PIECE as u64, hex::encode(sent.finalize())));
        assert_eq!(down.read(&mut [0; 1]).unwrap(), 0, "and it ends where it should");
    }
}
