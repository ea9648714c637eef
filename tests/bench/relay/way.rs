//! The ways from here to the service: OpenSSH's own forwarding, and this build's daemon with either carrier.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::ports;
use crate::support::process::Process;
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use std::net::{SocketAddr, TcpStream};

/// An open way. Its processes end with it.
pub struct Way {
    pub name: &'static str,
    /// Where a client connects.
    pub port: u16,
    /// The process on the client's side.
    pub pid: u32,
    _fleet: Fleet,
    _ssh: Option<(Process, ports::Lease)>,
}

impl Way {
    pub fn openssh(service: SocketAddr) -> Self {
        let fleet = Fleet::on_loopback(&["far", "near"]);
        let lease = ports::one();
        let sshd = fleet.hosts[0].sshd.as_ref().unwrap();
        let (to, near) = (sshd.destination(), &fleet.hosts[1].home);
        let (login, at) = to.rsplit_once(':').unwrap();
        let forward = format!("127.0.0.1:{}:{service}", lease.port());
        let key = near.file(".stado/resolver-ssh-key");
        let known = format!("UserKnownHostsFile={}", near.file(".ssh/known_hosts").display());
        let cipher = "Ciphers=aes128-gcm@openssh.com";
        let args = [
            "-F",
            "none",
            "-N",
            "-p",
            at,
            "-i",
            key.to_str().unwrap(),
            "-o",
            &known,
            "-o",
            cipher,
            "-L",
            &forward,
            login,
        ];
        let ssh = near.start("ssh", "ssh", &args);
        listens(lease.port());
        let pid = ssh.pid();
        Self { name: "`ssh -N -L`", port: lease.port(), pid, _fleet: fleet, _ssh: Some((ssh, lease)) }
    }

    pub fn direct(service: SocketAddr) -> Self {
        Self::daemon("direct-tcpip", service, false)
    }

    pub fn multiplex(service: SocketAddr) -> Self {
        Self::daemon("multiplex", service, true)
    }

    fn daemon(name: &'static str, service: SocketAddr, multiplex: bool) -> Self {
        let mut fleet = Fleet::on_loopback(&["far", "near"]);
        if multiplex {
            fleet.declare("far", "stado_command", json!(STADO));
        }
        fleet.service("bench", "far", "tcp", service.port(), "shop");
        let port = fleet.adapter("near", "bench", "shop");
        fleet.up();
        listens(port);
        let _first = TcpStream::connect(("127.0.0.1", port)).unwrap();
        wait_until("the carrier is known", PATIENCE, || {
            let state = fleet.host("near").published();
            state["links"][0]["carrier"] == name
        });
        let pid = fleet.host("near").daemon().pid();
        Self { name, port, pid, _fleet: fleet, _ssh: None }
    }
}

fn listens(port: u16) {
    wait_until("it listens", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
}
