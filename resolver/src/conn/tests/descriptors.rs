//! Rule 7: a daemon with few descriptors and many clients. The daemon is a process of its own: this test program, told to run
//! only the ignored test below.
use super::support::*;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

const DESCRIPTORS: u64 = 64;
const CLIENTS: usize = 150;

#[tokio::test]
async fn out_of_descriptors_accepting_pauses_and_the_control_socket_still_answers() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control");
    let backend = greeter("hi").await;
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "conn::tests::descriptors::daemon_with_few_descriptors"])
        .env("STADO_TEST_BACKEND", backend.to_string())
        .env("STADO_TEST_CONTROL", &control)
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let addr: SocketAddr = lines.find_map(|line| line.unwrap().split("serving ").nth(1)?.parse().ok()).unwrap();

    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(TcpStream::connect(addr).await.unwrap());
    }
    // Some are served, the others wait in the backlog.
    assert_eq!(read_exact(&mut clients[0], 2).await, b"hi");
    let before = cpu_ticks(daemon.id());
    let mut waiting = clients.split_off(CLIENTS - 1).remove(0);
    assert!(timeout(Duration::from_millis(500), waiting.read_u8()).await.is_err(), "there are not descriptors for all");
    for _ in 0..20 {
        let mut asked = UnixStream::connect(&control).await.unwrap();
        let mut said = String::new();
        timeout(PATIENCE, asked.read_to_string(&mut said)).await.unwrap().unwrap();
        assert_eq!(said, "alive");
    }
    let burnt = cpu_ticks(daemon.id()) - before;
    assert!(burnt < 25, "{burnt} ticks of CPU burnt while waiting");

    // Every client is served in its turn, as the ones before it leave.
    for mut client in clients.into_iter().skip(1) {
        assert_eq!(read_exact(&mut client, 2).await, b"hi");
        client.write_all(b"!").await.unwrap();
        assert_eq!(read_exact(&mut client, 1).await, b"!");
    }
    assert_eq!(read_exact(&mut waiting, 2).await, b"hi");
    drop(daemon.stdin.take());
    assert!(daemon.wait().unwrap().success());
}

/// User and system time of a process in ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
#[ignore = "the daemon of the test above, in a process of its own"]
fn daemon_with_few_descriptors() {
    let Ok(backend) = std::env::var("STADO_TEST_BACKEND") else { return };
    let limit = rustix::process::Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let control = tokio::net::UnixListener::bind(std::env::var("STADO_TEST_CONTROL").unwrap()).unwrap();
        let rig = Rig::mesh(local(backend.parse().unwrap()));
        tokio::spawn(async move {
            loop {
                let (mut asking, _) = control.accept().await.unwrap();
                asking.write_all(b"alive").await.unwrap();
            }
        });
        println!("serving {}", rig.addr);
        std::io::stdout().flush().unwrap();
        // The parent closes our standard input when it is done with us, or dies.
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await.unwrap().unwrap();
    });
}
