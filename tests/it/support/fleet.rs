//! A fleet on one machine: hosts with homes, addresses and daemons, and the registry that describes them.
use super::home::{Home, STADO};
use super::netns::Network;
use super::ports::{self, Lease};
use super::process::{Process, Run, run_with};
use super::sshd::{Sshd, authorize, keygen};
use super::{PATIENCE, wait_for, wait_until};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// One host: an account, its sshd, and its daemon when it runs.
pub struct Host {
    pub name: String,
    pub home: Home,
    pub address: IpAddr,
    pub sshd: Option<Sshd>,
    daemon: Option<Process>,
    api: Lease,
}

/// Hosts, the first of which is the authority, and the registry as it was last written.
pub struct Fleet {
    pub hosts: Vec<Host>,
    pub registry: Value,
    pub network: Option<Network>,
    leases: Vec<Lease>,
}

/// Seconds between two reads of the registry in these fleets.
pub const REFRESH: u64 = 1;

impl Fleet {
    /// Hosts on loopback addresses of their own, each with a real sshd; every host may log in to every other.
    pub fn on_loopback(names: &[&str]) -> Self {
        // Addresses differ between fleets, so that one fleet's known hosts are never another's.
        static NEXT: AtomicU8 = AtomicU8::new(2);
        let address = |_| IpAddr::from(Ipv4Addr::new(127, 0, 0, NEXT.fetch_add(1, Relaxed)));
        Self::new(names, None, address)
    }

    /// Hosts that nobody logs in to: a destination is declared, and nothing listens there.
    pub fn on_loopback_without_sshd(names: &[&str]) -> Self {
        // Each a name of its own: one address is one host.
        let address = |n: usize| IpAddr::from(Ipv4Addr::new(127, 0, 9, u8::try_from(9 + n).unwrap()));
        let hosts: Vec<_> = names.iter().enumerate().map(|(n, name)| Host::new(name, address(n))).collect();
        Self::of(hosts, None)
    }

    /// Hosts in network namespaces of their own.
    pub fn on_networks(names: &[&str]) -> Self {
        let network = Network::new(u8::try_from(names.len()).unwrap());
        let addresses: Vec<_> = (0..names.len()).map(|n| network.address(n)).collect();
        Self::new(names, Some(network), |n| addresses[n])
    }

    fn new(names: &[&str], network: Option<Network>, address: impl Fn(usize) -> IpAddr) -> Self {
        let mut hosts: Vec<_> = names.iter().enumerate().map(|(n, name)| Host::new(name, address(n))).collect();
        for (n, host) in hosts.iter_mut().enumerate() {
            if let Some(network) = &network {
                host.home.enter(network.namespace(n));
            }
            host.sshd = Some(Sshd::start(&host.home, host.address));
        }
        let known: String = hosts.iter().filter_map(|h| Some(h.sshd.as_ref()?.known_host())).collect();
        let keys: Vec<_> = hosts.iter().map(|h| h.home.read(".stado/resolver-ssh-key.pub")).collect();
        for host in &hosts {
            host.home.write(".ssh/known_hosts", &known);
            keys.iter().for_each(|key| authorize(&host.home, key));
        }
        Self::of(hosts, network)
    }

    fn of(hosts: Vec<Host>, network: Option<Network>) -> Self {
        let targets: Vec<_> = hosts.iter().map(Host::target).collect();
        let registry = json!({
            "schema_version": 2,
            "targets": targets,
            "coordinators": [],
            "service_directory": {
                "authority": {"target": hosts[0].name, "command": STADO},
                "generation": 1,
                "services": {}
            },
            "channels": {"notes": "kept through every write"}
        });
        Self { hosts, registry, network, leases: Vec::new() }
    }

    pub fn host(&mut self, name: &str) -> &mut Host {
        self.hosts.iter_mut().find(|h| h.name == name).unwrap_or_else(|| panic!("no host {name}"))
    }

    fn target(&mut self, name: &str) -> &mut Value {
        let targets = self.registry["targets"].as_array_mut().unwrap();
        targets.iter_mut().find(|t| t["name"] == name).unwrap()
    }

    /// Declares a key of a target.
    pub fn declare(&mut self, host: &str, key: &str, value: Value) {
        self.target(host)[key] = value;
    }

    /// Declares a target that is no host of this rig, reached by one connection path.
    pub fn stranger(&mut self, name: &str, ssh: &str) {
        self.registry["targets"].as_array_mut().unwrap().push(json!({
            "name": name, "kind": "local", "release_platform": "linux-amd64", "ssh": ssh, "hostnames": [], "services": []
        }));
    }

    /// Declares the seconds in which an adapter of `host` has to reach its service.
    pub fn budget(&mut self, host: &str, service: &str, seconds: u64) {
        let adapters = self.target(host)["service_resolver"]["adapters"].as_array_mut().unwrap();
        let adapter = adapters.iter_mut().find(|adapter| adapter["service"] == service).unwrap();
        adapter["connect_seconds"] = json!(seconds);
    }

    /// Declares how often every host reads the registry.
    pub fn refresh_every(&mut self, seconds: u64) {
        for target in self.registry["targets"].as_array_mut().unwrap() {
            target["service_resolver"]["refresh_seconds"] = json!(seconds);
        }
    }

    /// Declares a service that `host` serves at a port of its loopback, for one consumer.
    pub fn service(&mut self, service: &str, host: &str, scheme: &str, port: u16, consumer: &str) {
        self.target(host)["services"].as_array_mut().unwrap().push(json!({"name": service}));
        self.registry["service_directory"]["services"][service] = json!({
            "managed_service": service,
            "active_host": host,
            "endpoints": {host: {"url": format!("{scheme}://127.0.0.1:{port}")}},
            "consumers": {consumer: {"capabilities": []}}
        });
    }

    /// Declares the adapter through which `host` reaches a service; its port.
    pub fn adapter(&mut self, host: &str, service: &str, consumer: &str) -> u16 {
        let port = self.reserve();
        self.adapter_at(host, service, consumer, port);
        port
    }

    /// A port for whatever needs one.
    pub fn reserve(&mut self) -> u16 {
        let lease = ports::one();
        let port = lease.port();
        self.leases.push(lease);
        port
    }

    /// Declares an adapter at a port.
    pub fn adapter_at(&mut self, host: &str, service: &str, consumer: &str, port: u16) {
        let adapter = json!({"service": service, "consumer": consumer, "bind": format!("127.0.0.1:{port}")});
        self.target(host)["service_resolver"]["adapters"].as_array_mut().unwrap().push(adapter);
    }

    /// Declares an adapter whose port is chosen by the host.
    pub fn adapter_without_bind(&mut self, host: &str, service: &str, consumer: &str) {
        let adapter = json!({"service": service, "consumer": consumer});
        self.target(host)["service_resolver"]["adapters"].as_array_mut().unwrap().push(adapter);
    }

    /// Moves a service to another port of its host, under the next generation; not yet pushed.
    pub fn moved(&mut self, service: &str, port: u16) {
        let directory = &mut self.registry["service_directory"];
        directory["generation"] = json!(directory["generation"].as_u64().unwrap() + 1);
        let entry = &mut directory["services"][service];
        let host = entry["active_host"].as_str().unwrap().to_owned();
        let url = entry["endpoints"][&host]["url"].as_str().unwrap();
        let origin = url.rsplit_once(':').unwrap().0.to_owned();
        entry["endpoints"][&host]["url"] = json!(format!("{origin}:{port}"));
    }

    /// The registry as it is written: a directory without services has another key.
    fn written(&self) -> Value {
        let mut registry = self.registry.clone();
        if registry["service_directory"]["services"].as_object().is_some_and(serde_json::Map::is_empty) {
            let mut directory = registry.as_object_mut().unwrap().remove("service_directory").unwrap();
            directory.as_object_mut().unwrap().remove("services");
            registry["empty_directory"] = directory;
        }
        registry
    }

    /// Pushes the registry as it stands here, as a person on `host` would.
    pub fn push(&mut self, host: &str) -> Run {
        let text = serde_json::to_string_pretty(&self.written()).unwrap();
        let host = self.host(host);
        let file = host.home.write("registry-to-push.json", text);
        host.home.stado(&["registry", "push", file.to_str().unwrap(), "--json"])
    }

    /// Fetches the first copy on every host but the authority.
    pub fn copies(&mut self) {
        let from = self.hosts[0].sshd.as_ref().unwrap().destination();
        let command = self.registry["service_directory"]["authority"]["command"].as_str().unwrap();
        for host in &self.hosts[1..] {
            host.home.stado(&["registry", "pull", "--from", &from, "--command", command]).ok();
        }
    }

    /// Writes the registry on the authority, fetches the first copy on every other host, and starts every daemon.
    pub fn up(&mut self) {
        let names: Vec<_> = self.hosts.iter().map(|h| h.name.clone()).collect();
        self.push(&names[0]).ok();
        self.copies();
        for name in &names {
            self.host(name).serve();
        }
        for name in &names {
            self.host(name).ready();
        }
    }
}

impl Host {
    fn new(name: &str, address: IpAddr) -> Self {
        let mut home = Home::new();
        home.set("STADO_TARGET", name);
        home.write(".stado/keep", "");
        keygen(&home.file(".stado/resolver-ssh-key"));
        Self { name: name.into(), home, address, sshd: None, daemon: None, api: ports::one() }
    }

    fn target(&self) -> Value {
        let nowhere = || format!("nobody@{}:{}", self.address, self.api.port());
        json!({
            "name": self.name, "kind": "local", "release_platform": "linux-amd64",
            "ssh": self.sshd.as_ref().map_or_else(nowhere, Sshd::destination), "hostnames": [self.name],
            "services": [],
            "service_resolver": {
                "api_bind": format!("127.0.0.1:{}", self.api.port()),
                "refresh_seconds": REFRESH, "max_stale_seconds": 3600, "adapters": []
            }
        })
    }

    /// Starts the daemon; does not wait for it.
    pub fn serve(&mut self) {
        self.daemon = Some(self.home.start("resolver", STADO, &["resolver", "serve"]));
    }

    pub fn daemon(&mut self) -> &mut Process {
        self.daemon.as_mut().expect("the daemon runs")
    }

    /// Stops the daemon with SIGTERM; it must end well.
    pub fn stop(&mut self) {
        let status = self.daemon.take().expect("the daemon runs").stop();
        assert!(status.success(), "{status}");
    }

    /// Kills the daemon without a chance to tidy up.
    pub fn kill9(&mut self) {
        self.daemon.take().expect("the daemon runs").kill9();
    }

    /// `resolver status --json`, with its exit code.
    pub fn status(&self) -> (i32, Value) {
        let run = self.home.stado(&["resolver", "status", "--json"]);
        (run.code, serde_json::from_str(&run.stdout).unwrap_or_else(|_| json!({"printed": run.stderr})))
    }

    /// Waits for `ready` with exit 0; the status.
    pub fn ready(&mut self) -> Value {
        let mut last = Value::Null;
        wait_for(&format!("{} is ready", self.name), PATIENCE, || {
            let (code, status) = self.status();
            let ended = self.daemon.as_mut().and_then(Process::ended);
            assert!(ended.is_none(), "{} ended with {ended:?}", self.name);
            if status != last {
                eprintln!("{}: {code} {status}", self.name);
                last = status.clone();
            }
            (code == 0 && status["verdict"] == "ready").then_some(status)
        })
    }

    /// Waits until the daemon holds a generation of the directory.
    pub fn holds(&self, generation: u64) {
        wait_until(&format!("{} holds generation {generation}", self.name), PATIENCE, || {
            self.published()["generation"].as_u64() == Some(generation)
        });
    }

    /// The published state file.
    pub fn published(&self) -> Value {
        serde_json::from_str(&self.home.read(".stado/resolver-state.json")).unwrap_or(Value::Null)
    }

    /// `registry push - …` with `document` on standard input.
    pub fn push_stdin(&self, document: &Value, args: &[&str]) -> Run {
        let args = [&["registry", "push", "-"], args].concat();
        run_with(&mut self.home.command(STADO, &args), document.to_string().as_bytes())
    }
}
