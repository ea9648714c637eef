//! The authority, the workstation, and the registry that joins them.
use crate::Held;
use crate::host::Host;
use crate::services::Server;
use serde_json::{Value, json};
use std::fmt::Write;

/// The consumer that this example is.
const CONSUMER: &str = "you";
/// What the site says.
pub(crate) const PAGE: &str = "the site answers\n";

pub(crate) struct Fleet {
    pub(crate) authority: Host,
    pub(crate) workstation: Host,
    pub(crate) generation: u64,
    echo: Server,
    site: Server,
    moves: u32,
    /// Removed when everything in it has ended.
    _dir: tempfile::TempDir,
}

impl Fleet {
    /// Starts both hosts; returns when both report that they are ready.
    pub(crate) fn start() -> Held<Self> {
        let dir = tempfile::Builder::new().prefix("two-hosts").tempdir()?;
        let authority = Host::new(dir.path(), "authority", 17_700)?;
        let workstation = Host::new(dir.path(), "workstation", authority.api + 1)?;
        let (echo, site) = (Server::echo("first home")?, Server::http(PAGE)?);
        let mut fleet = Self { authority, workstation, generation: 1, echo, site, moves: 0, _dir: dir };
        fleet.join()?;
        Ok(fleet)
    }

    /// What a person does once: keys exchanged, the registry written, the first copy fetched.
    fn join(&mut self) -> Held {
        self.push(&self.authority)?;
        for (host, other) in [(&self.authority, &self.workstation), (&self.workstation, &self.authority)] {
            host.write(".stado/gate/authorized_keys", &other.public_key()?)?;
        }
        self.authority.serve()?;
        let line = format!("[127.0.0.1]:{} {}", self.authority.gate, self.authority.gate_key()?);
        self.workstation.write(".ssh/known_hosts", &line)?;
        let (from, command) = (self.destination(), program()?);
        self.workstation.stado(&["registry", "pull", "--from", &from, "--command", &command])?;
        self.workstation.serve()?;
        self.authority.ready(self.generation)?;
        self.workstation.ready(self.generation)
    }

    fn destination(&self) -> String {
        format!("stado@127.0.0.1:{}", self.authority.gate)
    }

    /// Writes the registry as it now is, from `host`: on the workstation it goes to the authority over SSH.
    fn push(&self, host: &Host) -> Held {
        let file = host.write("registry.json", &serde_json::to_string_pretty(&self.registry()?)?)?;
        host.stado(&["registry", "push", file.to_str().ok_or("a printable path")?]).map(drop)
    }

    fn registry(&self) -> Held<Value> {
        let target = |host: &Host, ssh: String| {
            json!({
                "name": host.name, "kind": "local", "release_platform": "linux-amd64", "ssh": ssh,
                "hostnames": [host.name], "services": [],
                "service_resolver": {
                    "api_bind": format!("127.0.0.1:{}", host.api),
                    "refresh_seconds": 5, "max_stale_seconds": 60, "adapters": []
                }
            })
        };
        let mut authority = target(&self.authority, self.destination());
        // Two names of one address, since no two targets may claim the same identity.
        let mut workstation = target(&self.workstation, format!("stado@localhost:{}", self.workstation.gate));
        let services = [("echo", "tcp", self.echo.port()), ("site", "http", self.site.port())];
        let mut directory = serde_json::Map::new();
        for (name, scheme, port) in services {
            array(&mut authority, "/services")?.push(json!({"name": name}));
            // Without a bind: the workstation's daemon chooses a port and keeps it.
            array(&mut workstation, "/service_resolver/adapters")?.push(json!({"service": name, "consumer": CONSUMER}));
            let entry = json!({
                "managed_service": name, "active_host": "authority",
                "endpoints": {"authority": {"url": format!("{scheme}://127.0.0.1:{port}")}},
                "consumers": {CONSUMER: {"capabilities": []}}
            });
            directory.insert(name.into(), entry);
        }
        Ok(json!({
            "schema_version": 2,
            "targets": [authority, workstation],
            "service_directory": {
                "authority": {"target": "authority", "command": program()?},
                "generation": self.generation,
                "services": directory
            }
        }))
    }

    /// Where the workstation reaches a service: `host:port`.
    pub(crate) fn address(&self, service: &str) -> Held<String> {
        let connect = ["service", "directory", "connect", service, "--consumer", CONSUMER, "--json"];
        let answer: Value = serde_json::from_str(&self.workstation.stado(&connect)?)?;
        let url = answer.get("url").and_then(Value::as_str).ok_or_else(|| format!("no url in {answer}"))?;
        Ok(url.split_once("://").map_or(url, |(_, address)| address).to_owned())
    }

    /// Starts the echo service on another port, says so in the directory from the workstation, and stops the old one;
    /// the two ports.
    pub(crate) fn move_echo(&mut self) -> Held<(u16, u16)> {
        self.moves += 1;
        self.generation += 1;
        let moved = Server::echo(&format!("home number {}", self.moves + 1))?;
        let (from, to) = (self.echo.port(), moved.port());
        let _old = std::mem::replace(&mut self.echo, moved);
        self.push(&self.workstation)?;
        self.workstation.ready(self.generation)?;
        Ok((from, to))
    }

    /// Addresses to try, and both hosts' status.
    pub(crate) fn describe(&self) -> Held<String> {
        let (echo, site) = (self.address("echo")?, self.address("site")?);
        let mut text = String::new();
        writeln!(text, "\nstable addresses on the workstation:")?;
        writeln!(text, "  echo  {echo}    try: nc {}", echo.replace(':', " "))?;
        writeln!(text, "  site  {site}    try: curl http://{site}/\n")?;
        for host in [&self.authority, &self.workstation] {
            writeln!(text, "{} (home {}):\n{}", host.name, host.file("").display(), host.status(&[])?)?;
        }
        Ok(text)
    }

    /// Stops both daemons; each must end well.
    pub(crate) fn stop(mut self) -> Held {
        self.workstation.stop()?;
        self.authority.stop()
    }
}

fn array<'a>(value: &'a mut Value, pointer: &str) -> Held<&'a mut Vec<Value>> {
    value.pointer_mut(pointer).and_then(Value::as_array_mut).ok_or_else(|| format!("no list at {pointer}").into())
}

/// What runs as `stado` on the authority: this program. Its gate ignores the name and runs the verb itself.
fn program() -> Held<String> {
    Ok(std::env::current_exe()?.to_str().ok_or("a printable path")?.to_owned())
}
