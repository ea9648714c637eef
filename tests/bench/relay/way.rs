//! The ways from here to the service: OpenSSH's own forwarding, and this build's daemon with its carriers.
use crate::delay;
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::ports;
use crate::support::process::Process;
use crate::support::sshd::{keygen, login};
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Openssh,
    Multiplex,
    Gate,
    Direct,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Openssh, Self::Multiplex, Self::Gate, Self::Direct];

    pub fn name(self) -> &'static str {
        match self {
            Self::Openssh => "`ssh -N -L`",
            Self::Multiplex => "multiplex, sshd",
            Self::Gate => "multiplex, gate",
            Self::Direct => "direct-tcpip, sshd",
        }
    }

    /// As status names it.
    fn carrier(self) -> &'static str {
        if self == Self::Direct { "direct-tcpip" } else { "multiplex" }
    }
}

/// An open way. Its processes end with it.
pub struct Way {
    pub kind: Kind,
    /// Where a client connects.
    pub port: u16,
    /// The process on the client's side.
    pub pid: u32,
    _fleet: Fleet,
    _ssh: Option<(Process, ports::Lease)>,
    _gate: Option<ports::Lease>,
}

impl Way {
    /// Opens it; with `each_way`, to a far host that is that far away.
    pub fn start(kind: Kind, service: SocketAddr, each_way: Option<Duration>) -> Self {
        match kind {
            Kind::Openssh => Self::openssh(service, each_way),
            Kind::Gate => Self::gate(service, each_way),
            Kind::Multiplex | Kind::Direct => Self::through_sshd(kind, service, each_way),
        }
    }

    fn openssh(service: SocketAddr, each_way: Option<Duration>) -> Self {
        let fleet = Fleet::on_loopback(&["far", "near"]);
        let lease = ports::one();
        let at = seen(&fleet, fleet.hosts[0].sshd.as_ref().unwrap().at(), each_way);
        let near = &fleet.hosts[1].home;
        let forward = format!("127.0.0.1:{}:{service}", lease.port());
        let key = near.file(".stado/resolver-ssh-key");
        let known = format!("UserKnownHostsFile={}", near.file(".ssh/known_hosts").display());
        let (port, to) = (at.port().to_string(), format!("{}@{}", login(), at.ip()));
        let mut args = vec!["-F", "none", "-N", "-p", &port, "-i", key.to_str().unwrap()];
        args.extend(["-o", &known, "-o", "Ciphers=aes128-gcm@openssh.com", "-L", &forward, &to]);
        let ssh = near.start("ssh", "ssh", &args);
        listens(lease.port());
        let pid = ssh.pid();
        Self { kind: Kind::Openssh, port: lease.port(), pid, _fleet: fleet, _ssh: Some((ssh, lease)), _gate: None }
    }

    fn through_sshd(kind: Kind, service: SocketAddr, each_way: Option<Duration>) -> Self {
        let mut fleet = Fleet::on_loopback(&["far", "near"]);
        let at = seen(&fleet, fleet.hosts[0].sshd.as_ref().unwrap().at(), each_way);
        fleet.declare("far", "ssh", json!(format!("{}@{at}", login())));
        if kind == Kind::Multiplex {
            fleet.declare("far", "stado_command", json!(STADO));
        }
        let port = placed(&mut fleet, service);
        fleet.up();
        Self::carried(kind, fleet, port, None)
    }

    /// The far host has no sshd that anybody logs in to.
    fn gate(service: SocketAddr, each_way: Option<Duration>) -> Self {
        let mut fleet = Fleet::on_loopback(&["far", "near"]);
        let lease = ports::one();
        let bind = SocketAddr::new(fleet.hosts[0].address, lease.port());
        let key = fleet.hosts[1].home.read(".stado/resolver-ssh-key.pub");
        let far = &fleet.hosts[0].home;
        far.write(".stado/config.json", json!({"gate": {"bind": bind.to_string()}}).to_string());
        far.write(".stado/gate/authorized_keys", key);
        keygen(&far.file(".stado/gate/host_ed25519"));
        know(&fleet, bind, &far.read(".stado/gate/host_ed25519.pub"));
        let at = seen_as(&fleet, bind, each_way, &far.read(".stado/gate/host_ed25519.pub"));
        fleet.declare("far", "ssh", json!(format!("{}@{at}", login())));
        let port = placed(&mut fleet, service);
        fleet.up();
        Self::carried(Kind::Gate, fleet, port, Some(lease))
    }

    fn carried(kind: Kind, mut fleet: Fleet, port: u16, gate: Option<ports::Lease>) -> Self {
        listens(port);
        // Opened again until it is known: the first attempts may come before the far host stands.
        wait_until("the carrier is known", PATIENCE, || {
            let _stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            fleet.host("near").published()["links"][0]["carrier"] == kind.carrier()
        });
        let pid = fleet.host("near").daemon().pid();
        Self { kind, port, pid, _fleet: fleet, _ssh: None, _gate: gate }
    }
}

/// The service on `far`, and where clients on `near` reach it.
fn placed(fleet: &mut Fleet, service: SocketAddr) -> u16 {
    // Seldom enough to be no load, often enough that the carrier is soon published.
    fleet.refresh_every(5);
    fleet.service("bench", "far", "tcp", service.port(), "shop");
    fleet.adapter("near", "bench", "shop")
}

/// Where `near` finds the far host's sshd.
fn seen(fleet: &Fleet, at: SocketAddr, each_way: Option<Duration>) -> SocketAddr {
    let key = fleet.hosts[0].home.read("sshd/host_key.pub");
    seen_as(fleet, at, each_way, &key)
}

fn seen_as(fleet: &Fleet, at: SocketAddr, each_way: Option<Duration>, key: &str) -> SocketAddr {
    let Some(each_way) = each_way else { return at };
    let proxy = delay::start(at, each_way);
    know(fleet, proxy, key);
    proxy
}

/// Writes a host key down on `near`.
fn know(fleet: &Fleet, at: SocketAddr, key: &str) {
    let near = &fleet.hosts[1].home;
    let key = key.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let known = near.read(".ssh/known_hosts");
    near.write(".ssh/known_hosts", format!("{known}[{}]:{} {}\n", at.ip(), at.port(), key.trim()));
}

fn listens(port: u16) {
    wait_until("it listens", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
}
