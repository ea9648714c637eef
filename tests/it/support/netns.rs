//! Hosts with networks of their own, so that a link can be cut without a word to either end. One bridge in a namespace
//! of its own joins them; the machine's own network is not touched. Addresses are in 198.18.0.0/15.
use super::process::{Run, run};
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Whether namespaces, veth pairs, a bridge and packet filters can be made here.
pub fn usable() -> Result<(), String> {
    static USABLE: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
    USABLE
        .get_or_init(|| {
            let missing = ["ip", "iptables"].into_iter().find(|name| super::program(name).is_none());
            match missing {
                Some(name) => Err(format!("no {name}")),
                None => {
                    std::panic::catch_unwind(|| Network::new(1).cut(0)).map_err(|_| "the kernel refuses".to_owned())
                }
            }
        })
        .clone()
}

/// Whether packets can be lost at random here.
pub fn loses() -> bool {
    Network::new(1).lose(0, 0.5)
}

/// Which packets of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    Both,
}

/// Some hosts on one network.
pub struct Network {
    hub: String,
    hosts: Vec<Host>,
}

/// A namespace with a loopback of its own and `eth0` on the network.
struct Host {
    namespace: String,
    address: Ipv4Addr,
}

impl Network {
    pub fn new(hosts: u8) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("stado-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let mut network = Self { hub: format!("{name}-hub"), hosts: Vec::new() };
        ip(&["netns", "add", &network.hub]);
        network.in_hub(&["link", "add", "br0", "type", "bridge"]);
        network.in_hub(&["link", "set", "br0", "up"]);
        for n in 0..hosts {
            network.join(format!("{name}-{n}"), Ipv4Addr::new(198, 18, 0, 10 + n));
        }
        network
    }

    fn join(&mut self, namespace: String, address: Ipv4Addr) {
        let port = format!("port{}", self.hosts.len());
        ip(&["netns", "add", &namespace]);
        self.hosts.push(Host { namespace: namespace.clone(), address });
        self.in_hub(&["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &namespace]);
        self.in_hub(&["link", "set", &port, "master", "br0", "up"]);
        let inside = |args: &[&str]| ip(&[&["-n", namespace.as_str()], args].concat());
        inside(&["link", "set", "lo", "up"]);
        inside(&["addr", "add", &format!("{address}/15"), "dev", "eth0"]);
        inside(&["link", "set", "eth0", "up"]);
    }

    /// Gives a host a container bridge at 172.31.0.1 with one container at 172.31.0.2; the container's number.
    pub fn contain(&mut self, host: usize) -> usize {
        let outside = self.hosts[host].namespace.clone();
        let container = format!("{outside}-c");
        let on = |namespace: &str, args: &[&str]| ip(&[&["-n", namespace], args].concat());
        on(&outside, &["link", "add", "box0", "type", "bridge"]);
        on(&outside, &["addr", "add", "172.31.0.1/24", "dev", "box0"]);
        on(&outside, &["link", "set", "box0", "up"]);
        ip(&["netns", "add", &container]);
        self.hosts.push(Host { namespace: container.clone(), address: Ipv4Addr::new(172, 31, 0, 2) });
        on(&outside, &["link", "add", "veth0", "type", "veth", "peer", "name", "eth0", "netns", &container]);
        on(&outside, &["link", "set", "veth0", "master", "box0", "up"]);
        on(&container, &["addr", "add", "172.31.0.2/24", "dev", "eth0"]);
        on(&container, &["link", "set", "eth0", "up"]);
        self.hosts.len() - 1
    }

    fn in_hub(&self, args: &[&str]) {
        ip(&[&["-n", self.hub.as_str()], args].concat());
    }

    pub fn namespace(&self, host: usize) -> &str {
        &self.hosts[host].namespace
    }

    pub fn address(&self, host: usize) -> IpAddr {
        self.hosts[host].address.into()
    }

    /// Drops every packet of a host from now on, both ways and without a word.
    pub fn cut(&self, host: usize) {
        self.cut_to(host, Way::Both);
    }

    /// Undoes [`Network::cut`].
    pub fn restore(&self, host: usize) {
        self.restore_to(host, Way::Both);
    }

    /// Drops every packet of a host that goes one way.
    pub fn cut_to(&self, host: usize, way: Way) {
        self.filter(host, "-I", way, &[]).ok();
    }

    /// Undoes [`Network::cut_to`].
    pub fn restore_to(&self, host: usize, way: Way) {
        self.filter(host, "-D", way, &[]).ok();
    }

    /// Loses packets of a host at random, both ways, from now on; `false` where the kernel has no `statistic` match.
    pub fn lose(&self, host: usize, probability: f64) -> bool {
        let probability = probability.to_string();
        let random = ["-m", "statistic", "--mode", "random", "--probability", &probability];
        self.filter(host, "-I", Way::Both, &random).code == 0
    }

    /// Gives a host another address in place of the one it has.
    pub fn renumber(&mut self, host: usize, address: Ipv4Addr) {
        let Host { namespace, address: old } = &mut self.hosts[host];
        // In this order: with the first address of a network the others go.
        for (action, address) in [("del", *old), ("add", address)] {
            ip(&["-n", namespace, "addr", action, &format!("{address}/15"), "dev", "eth0"]);
        }
        *old = address;
    }

    /// What names stand for on a host: its `/etc/hosts`, for programs that are started there from now on. Written again, it
    /// holds at once.
    pub fn names(&self, host: usize, lines: &str) {
        let directory = format!("/etc/netns/{}", self.namespace(host));
        std::fs::create_dir_all(&directory).unwrap();
        // In place: it is mounted where the programs look.
        std::fs::write(format!("{directory}/hosts"), format!("127.0.0.1 localhost\n{lines}")).unwrap();
    }

    fn filter(&self, host: usize, action: &str, way: Way, which: &[&str]) -> Run {
        let chains = [("INPUT", "-i", Way::In), ("OUTPUT", "-o", Way::Out)];
        let mut last = None;
        for (chain, side, _) in chains.into_iter().filter(|(_, _, only)| way == Way::Both || way == *only) {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", self.namespace(host), "iptables", "-w", action, chain, side, "eth0"]);
            last = Some(run(command.args(which).args(["-j", "DROP"])));
        }
        last.unwrap()
    }

    /// Runs `work` on a thread whose new sockets belong to the host.
    pub fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = std::fs::File::open(format!("/run/netns/{}", self.namespace(host))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                enter(&namespace);
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in self.hosts.iter().map(|host| &host.namespace).chain([&self.hub]) {
            run(Command::new("ip").args(["netns", "del", namespace]));
            let _ = std::fs::remove_dir_all(format!("/etc/netns/{namespace}"));
        }
    }
}

/// Moves this thread into a network.
#[cfg(target_os = "linux")]
fn enter(namespace: &std::fs::File) {
    let kind = rustix::thread::LinkNameSpaceType::Network;
    rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(namespace), Some(kind)).unwrap();
}
#[cfg(not(target_os = "linux"))]
fn enter(_: &std::fs::File) {
    panic!("networks of their own are Linux's");
}

fn ip(args: &[&str]) {
    run(Command::new("ip").args(args)).ok();
}
