//! An HTTP/2 client that sends what none may: each time the daemon says so, nobody else is served worse, and the backend never
//! hears of it.
use crate::support::home::Home;
use crate::support::http::{get, python_with, register, serve};
use crate::support::ports;
use crate::support::process::run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

const PROTOCOL: u8 = 1;
const FLOW: u8 = 3;
const STREAM_CLOSED: u8 = 5;
const FRAME_SIZE: u8 = 6;
const CALM: u8 = 11;

/// What may be answered: a code of an error, of the stream or of the connection (RFC 9113 leaves most of that to the server).
const EXPECTED: [(&str, &[u8]); 26] = [
    ("data on a closed stream", &[STREAM_CLOSED, PROTOCOL]),
    ("headers on a closed stream", &[STREAM_CLOSED, PROTOCOL]),
    ("data on an idle stream", &[PROTOCOL]),
    ("a window on an idle stream", &[PROTOCOL]),
    ("a reset of an idle stream", &[PROTOCOL]),
    ("a stream of even number", &[PROTOCOL]),
    ("streams that go backwards", &[PROTOCOL, STREAM_CLOSED]),
    ("a push", &[PROTOCOL]),
    ("data on the connection", &[PROTOCOL]),
    ("another frame inside a head", &[PROTOCOL]),
    ("a frame that is too large", &[FRAME_SIZE]),
    ("more data than the window", &[FLOW]),
    ("a window of nothing", &[FLOW, PROTOCOL]),
    ("continuations without an end", &[CALM, PROTOCOL]),
    ("large continuations without an end", &[CALM, PROTOCOL]),
    ("a name in capitals", &[PROTOCOL]),
    ("connection", &[PROTOCOL]),
    ("keep-alive", &[PROTOCOL]),
    ("proxy-connection", &[PROTOCOL]),
    ("transfer-encoding", &[PROTOCOL]),
    ("upgrade", &[PROTOCOL]),
    ("te", &[PROTOCOL]),
    ("a pseudo field behind a field", &[PROTOCOL]),
    ("no path", &[PROTOCOL]),
    ("a body that is shorter than said", &[PROTOCOL]),
    ("rapid reset", &[CALM]),
];

/// Answers GET with `W`, never reads what is sent behind a POST, and remembers the heads.
fn remembering() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let told = heads.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let told = told.clone();
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                loop {
                    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                    if head.is_empty() {
                        return;
                    }
                    let waits = head[0].starts_with("POST");
                    told.lock().unwrap().push(head.join("\n"));
                    if waits {
                        // For ever: nobody wakes this thread.
                        loop {
                            thread::park();
                        }
                    }
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nW").is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, heads)
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn what_no_client_may_send_is_refused_and_costs_nobody_else_anything() {
    needs!("python3-h2");
    let (home, lease) = (Home::new(), ports::one());
    let daemon = serve(&home, lease.port(), &[]);
    let (backend, heads) = remembering();
    register(&home, "web", backend, &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/h2_illegal.py");
    let python = python_with("h2.connection, hyperframe").unwrap();
    let before = resident(daemon.pid());
    let printed = run(&mut home.command(python, &[script, &lease.port().to_string()])).ok().stdout;
    let rows: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, rows) = rows.split_last().unwrap();
    let verdicts: BTreeMap<&str, &str> =
        rows.iter().map(|row| (row["case"].as_str().unwrap(), row["verdict"].as_str().unwrap())).collect();
    let mut wrong = Vec::new();
    for (case, codes) in EXPECTED {
        let verdict = verdicts[case];
        let said = codes.iter().any(|code| verdict == format!("rst {code}") || verdict == format!("goaway {code}"));
        // Where the end of the connection overtakes the goodbye, a client that still writes sees nothing but a reset.
        if !said && verdict != "reset" {
            wrong.push(format!("{case}: {verdict}"));
        }
    }
    for flood in ["a flood of settings", "a flood of pings"] {
        let verdict = verdicts[flood];
        if !verdict.ends_with(" ack") && verdict != format!("goaway {CALM}") && verdict != "reset" {
            wrong.push(format!("{flood}: {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{printed}");
    assert_eq!(rows.len(), EXPECTED.len() + 2, "{printed}");
    assert_eq!((&last["other"], &last["cases"]), (&rows.len().into(), &rows.len().into()), "{printed}");
    for head in heads.lock().unwrap().iter() {
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("get / ") || head.starts_with("post / "), "{head}");
        assert!(!head.contains("x-upper") && !head.contains("chunked\ntransfer") && !head.contains("gzip"), "{head}");
        assert!(
            !head.contains("timeout=5") && !head.contains("proxy-connection") && !head.contains("websocket"),
            "{head}"
        );
    }
    assert_eq!(get(lease.port(), "web.localhost", ""), (200, "W".into()));
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more than before");
}
