//! A profile that can be moved: one service with state, run by plain commands on two hosts of a fleet.
use super::fleet::Fleet;
use super::home::Home;
use super::ports::{self, Lease};
use super::process::{Run, run, signal_pid};
use super::tcp::ask;
use super::{PATIENCE, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

const PROGRAM: &str = include_str!("notes.py");

/// The fleet, with `notes` placed on host `a`, able to run on `b`.
pub struct Notes {
    pub fleet: Fleet,
    /// The workstation's adapter.
    pub adapter: u16,
    ports: [Lease; 2],
}

impl Notes {
    /// Hosts of these names, among them `a`, `b` and `workstation`; the first is the authority. Everything is up.
    pub fn start(hosts: &[&str]) -> Self {
        let mut notes = Self::prepare(hosts);
        notes.fleet.push(hosts[0]).ok();
        notes.fleet.copies();
        notes.fleet.host("workstation").serve();
        notes.fleet.host("workstation").ready();
        notes.boot("a");
        notes
    }

    /// As [`Notes::start`], before anything is pushed or started.
    pub fn prepare(hosts: &[&str]) -> Self {
        let mut fleet = Fleet::on_loopback(hosts);
        let ports = [ports::one(), ports::one()];
        let port = |host: &str| if host == "a" { ports[0].port() } else { ports[1].port() };
        let on = |host: &str| {
            let url = format!("http://127.0.0.1:{}/health", port(host));
            json!({"units": {"notes": unit(host, port(host))}, "probes": [{"service": "notes", "url": url, "seconds": 20}]})
        };
        let address = |host: &str| json!({"url": format!("tcp://127.0.0.1:{}", port(host))});
        fleet.declare("a", "services", json!([{"name": "notes", "kind": "command"}]));
        fleet.registry["service_directory"]["services"]["notes"] = json!({
            "placement_profile": "notebook", "active_host": "a",
            "endpoints": {"a": address("a")}, "standby": {"b": address("b")},
            "consumers": {"shop": {"capabilities": []}}
        });
        fleet.registry["placement_profiles"] = json!([{
            "name": "notebook", "services": ["notes"], "stop_order": ["notes"], "start_order": ["notes"],
            "state": [
                {"path": "notes/data", "required": true, "tree": true},
                {"path": "notes/token", "required": false},
            ],
            "hosts": {"a": on("a"), "b": on("b")},
            "routing": [{"host": "workstation", "active_when_destination": "b", "unit": {
                "name": "tunnel", "kind": "command", "start": "touch tunnel.on", "stop": "rm -f tunnel.on", "running": "test -e tunnel.on"
            }}]
        }]);
        for host in ["a", "b"] {
            let home = &fleet.host(host).home;
            home.write("notes.py", PROGRAM);
            home.write("python", super::program("python3").unwrap().to_str().unwrap());
        }
        let home = &fleet.host("a").home;
        home.write("notes/data/count", "0");
        home.write("notes/data/it's a note", "kept");
        home.write("notes/token", "secret");
        let adapter = fleet.adapter("workstation", "notes", "shop");
        Self { fleet, adapter, ports }
    }

    pub fn home(&self, host: &str) -> &Home {
        &self.fleet.hosts.iter().find(|h| h.name == host).unwrap().home
    }

    pub fn port(&self, host: &str) -> u16 {
        self.ports[usize::from(host != "a")].port()
    }

    /// A placement verb, as a person on `host` types it.
    pub fn placement(&self, host: &str, args: &[&str]) -> Run {
        self.home(host).stado(&[&["placement"], args].concat())
    }

    /// Starts the service on a host, as its boot would.
    pub fn boot(&self, host: &str) {
        let unit = unit(host, self.port(host));
        run(&mut self.home(host).command("/bin/sh", &["-c", unit["start"].as_str().unwrap()])).ok();
        let port = self.port(host);
        wait_until("the service listens", PATIENCE, || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Pid of the service on a host, while it runs.
    pub fn pid(&self, host: &str) -> Option<u32> {
        let pid: u32 = self.home(host).read("notes.pid").trim().parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        (!stat.contains(") Z ")).then_some(pid)
    }

    /// Every host loses power, the authority and the clients' too, with all that runs on them, and is back.
    pub fn power_cut(&mut self) {
        self.fleet.host("workstation").kill9();
        for host in &mut self.fleet.hosts {
            host.sshd.as_mut().unwrap().down();
        }
        for host in ["a", "b"] {
            if let Some(pid) = self.pid(host) {
                signal_pid(pid, Signal::KILL);
                wait_until("the service is gone", PATIENCE, || self.pid(host).is_none());
            }
        }
        for host in &mut self.fleet.hosts {
            host.sshd.as_mut().unwrap().up(&host.home);
        }
        let desk = self.fleet.host("workstation");
        desk.serve();
        let pid = desk.daemon().pid();
        wait_until("the clients' resolver is back", PATIENCE, || {
            let state = desk.published();
            state["pid"] == pid && state["state"] == "serving"
        });
    }

    /// The registry as it is stored.
    pub fn registry(&self) -> Value {
        self.fleet.hosts[0].home.stado(&["registry", "pull"]).ok().json()
    }

    /// Where the registry has the service.
    pub fn placed(&self) -> String {
        self.registry()["service_directory"]["services"]["notes"]["active_host"].as_str().unwrap().to_owned()
    }

    /// One addition through the workstation's adapter: the host that answered, and the count.
    pub fn add(&self) -> (String, u64) {
        wait_for("an answer through the adapter", PATIENCE, || self.try_add())
    }

    /// As [`Notes::add`], once.
    pub fn try_add(&self) -> Option<(String, u64)> {
        parsed(&ask(("127.0.0.1", self.adapter), "add")?)
    }

    /// The service runs on exactly this host, its state is whole, its clients reach it, and no trace of a transaction is left.
    pub fn is_wholly_on(&self, host: &str, count: u64) {
        let other = if host == "a" { "b" } else { "a" };
        let registry = self.registry();
        assert_eq!(registry.get("placement_transactions"), None);
        assert_eq!(self.placed(), host);
        assert!(self.pid(host).is_some() && self.pid(other).is_none(), "{host}: {:?}", self.pid(host));
        let found =
            wait_for("an answer of the placed host", PATIENCE, || self.try_add().filter(|(from, _)| from == host));
        assert_eq!(found, (host.to_owned(), count + 1), "nothing was lost, nothing counted twice");
        let home = self.home(host);
        assert_eq!(
            (home.read("notes/data/it's a note").as_str(), home.read("notes/token").as_str()),
            ("kept", "secret")
        );
        let beside = std::fs::read_dir(home.file("notes")).unwrap().map(|e| e.unwrap().file_name());
        let beside: Vec<_> = beside.filter(|name| name.to_string_lossy().contains(".stado-")).collect();
        assert!(beside.is_empty(), "{beside:?}");
        assert_eq!(self.home("workstation").file("tunnel.on").exists(), host == "b", "its route follows");
        let status = self.placement("workstation", &["status"]).ok().stdout;
        assert_eq!(status, "no placement transaction is active\n");
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        for host in ["a", "b"] {
            if let Some(pid) = self.pid(host) {
                signal_pid(pid, Signal::KILL);
            }
        }
    }
}

/// `a:7`.
pub fn parsed(answer: &str) -> Option<(String, u64)> {
    let (host, count) = answer.split_once(':')?;
    Some((host.to_owned(), count.parse().ok()?))
}

/// Commands that hold while a file `hold-start` or `hold-stop` is there, so that a test can cut a step in its middle.
fn unit(host: &str, port: u16) -> Value {
    let hold = |verb: &str| {
        format!("if [ -e hold-{verb} ]; then : >held-{verb}; while [ -e hold-{verb} ]; do sleep 0.05; done; fi")
    };
    let start = format!(
        "{}; \"$(cat python)\" notes.py {host} {port} >notes.log 2>&1 </dev/null & echo $! >notes.pid",
        hold("start")
    );
    json!({
        "name": "notes", "kind": "command",
        "start": start.replace("fi; \"$(cat", "fi\n\"$(cat"),
        "stop": format!("{}; kill $(cat notes.pid)", hold("stop")),
        "running": "kill -0 $(cat notes.pid) && ! grep -q ') Z ' /proc/$(cat notes.pid)/stat",
    })
}
