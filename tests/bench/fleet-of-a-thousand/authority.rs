//! The authority: a daemon with a gate, and a registry that names as many hosts as are simulated.
use crate::support::fleet::Fleet;
use crate::support::ports::{self, Lease};
use crate::support::sshd::{keygen, login};
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::SystemTime;

pub struct Authority {
    fleet: Fleet,
    gate: SocketAddr,
    hosts: usize,
    turn: usize,
    _lease: Lease,
}

impl Authority {
    pub fn start(hosts: usize) -> Self {
        let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
        let lease = ports::one();
        let gate: SocketAddr = ([127, 0, 0, 1], lease.port()).into();
        let home = &fleet.hosts[0].home;
        home.write(".stado/config.json", json!({"gate": {"bind": gate.to_string()}}).to_string());
        home.write(".stado/gate/authorized_keys", home.read(".stado/resolver-ssh-key.pub"));
        keygen(&home.file(".stado/gate/host_ed25519"));
        let key = home.read(".stado/gate/host_ed25519.pub").split(' ').take(2).collect::<Vec<_>>().join(" ");
        home.write(".ssh/known_hosts", format!("[{}]:{} {}\n", gate.ip(), gate.port(), key.trim()));
        fleet.declare("authority", "ssh", json!(format!("{}@{gate}", login())));
        for n in 0..hosts {
            let name = format!("host-{n:04}");
            fleet.registry["targets"].as_array_mut().unwrap().push(json!({
                "name": name, "kind": "local", "release_platform": "linux-amd64",
                "ssh": format!("stado@{name}.fleet.example:22"), "hostnames": [name],
                "services": [],
                "service_resolver": {
                    "api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 3600, "adapters": []
                }
            }));
            fleet.service(&format!("service-{n:04}"), &name, "tcp", 5000, "shop");
        }
        fleet.push("authority").ok();
        let mut authority = Self { fleet, gate, hosts, turn: 0, _lease: lease };
        authority.serve();
        authority
    }

    fn serve(&mut self) {
        self.fleet.host("authority").serve();
        let gate = self.gate;
        wait_until("the gate takes connections", PATIENCE, || TcpStream::connect(gate).is_ok());
    }

    /// As a crash and a supervisor would.
    pub fn restart(&mut self) {
        self.fleet.host("authority").kill9();
        self.serve();
    }

    pub fn pid(&mut self) -> u32 {
        self.fleet.host("authority").daemon().pid()
    }

    /// Moves a service and gives when that was stored.
    pub fn change(&mut self) -> SystemTime {
        let service = format!("service-{:04}", self.turn * 37 % self.hosts);
        self.turn += 1;
        self.fleet.moved(&service, 5000 + u16::try_from(self.turn).unwrap());
        self.fleet.push("authority").ok();
        std::fs::metadata(self.registry()).unwrap().modified().unwrap()
    }

    fn registry(&self) -> PathBuf {
        self.store().join("registry.json")
    }

    /// The directory of its store.
    pub fn store(&self) -> PathBuf {
        self.fleet.hosts[0].home.file(".stado/local-storage")
    }

    /// Key with which hosts come in, and what they know of the gate's.
    pub fn keys(&self) -> [PathBuf; 2] {
        [".stado/resolver-ssh-key", ".ssh/known_hosts"].map(|file| self.fleet.hosts[0].home.file(file))
    }

    pub fn document_bytes(&self) -> usize {
        let text = std::fs::read_to_string(self.registry()).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string().len()
    }

    /// Bytes that went over the loopback of this network, both ways: with `tests/bench/alone` it is ours alone.
    pub fn carried() -> u64 {
        let text = std::fs::read_to_string("/proc/net/dev").unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub fn log(&mut self) -> String {
        self.fleet.host("authority").daemon().log()
    }
}
