//! Far hosts that are broken in ways of their own: one sshd with many ports, and what is no sshd at all.
use crate::support::home::Home;
use crate::support::process::Process;
use crate::support::sshd::{keygen, login};
use crate::support::{is_root, ports, program};
use rustix::net::{AddressFamily, SocketType, bind, connect, listen, socket};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;

/// What a port of the far host does differently.
pub struct Door {
    pub name: &'static str,
    /// Lines of its `Match` block.
    pub rules: &'static str,
}

/// One sshd that listens at one port of several addresses, a door each.
pub struct Far {
    port: ports::Lease,
    doors: Vec<&'static str>,
    host_key: String,
    _sshd: Process,
    _home: Home,
}

impl Far {
    /// `key` may log in, but where a door says otherwise.
    pub fn start(doors: &[Door], key: &str) -> Self {
        let (home, port) = (Home::new(), ports::one());
        let dir = home.file("sshd");
        home.write("sshd/authorized_keys", format!("{}\n", key.trim()));
        home.write("sshd/restricted_keys", format!("restrict {}\n", key.trim()));
        home.write("sshd/no_keys", "");
        keygen(&dir.join("host_key"));
        let dir = dir.display();
        let mut config = format!(
            "HostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             PrintMotd no\nUseDNS no\nMaxStartups 100\n"
        );
        for n in 0..doors.len() {
            config.push_str(&format!("ListenAddress {}:{}\n", address(n), port.port()));
        }
        for (n, door) in doors.iter().enumerate().filter(|(_, door)| !door.rules.is_empty()) {
            let rules = door.rules.replace("DIR", &dir.to_string());
            config.push_str(&format!("Match LocalAddress {}\n{rules}\n", address(n)));
        }
        let file = home.write("sshd/config", config);
        if is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let args = ["-D", "-e", "-f", file.to_str().unwrap()];
        let mut sshd = home.start("sshd/sshd", program("sshd").unwrap(), &args);
        sshd.expect("Server listening on");
        let host_key = std::fs::read_to_string(home.file("sshd/host_key.pub")).unwrap();
        Self { port, doors: doors.iter().map(|door| door.name).collect(), host_key, _sshd: sshd, _home: home }
    }

    fn at(&self, door: &str) -> SocketAddr {
        let n = self.doors.iter().position(|name| *name == door).unwrap();
        (address(n), self.port.port()).into()
    }

    /// What a connection path through a door is.
    pub fn destination(&self, door: &str) -> String {
        format!("{}@{}", login(), self.at(door))
    }

    /// The line of a known_hosts file for a door; `key` in place of its own.
    pub fn known(&self, door: &str, key: Option<&str>) -> String {
        let key = key.unwrap_or(&self.host_key);
        let key = key.split(' ').take(2).collect::<Vec<_>>().join(" ");
        format!("[{}]:{} {key}\n", self.at(door).ip(), self.port.port())
    }
}

/// Addresses differ, since the address of its path is a name of a host.
fn address(n: usize) -> IpAddr {
    Ipv4Addr::new(127, 0, 8, u8::try_from(n + 1).unwrap()).into()
}

/// An address that no other of these hosts has.
pub fn elsewhere() -> TcpListener {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    TcpListener::bind((Ipv4Addr::new(127, 0, 7, NEXT.fetch_add(1, Relaxed)), 0)).unwrap()
}

/// Greets each client with these bytes and closes; keeps it when there are none to say.
pub fn liar(says: &'static [u8]) -> SocketAddr {
    greets(elsewhere(), says)
}

/// As [`liar`], at an address of this host's services.
pub fn says_on_loopback(says: &'static [u8]) -> SocketAddr {
    greets(TcpListener::bind("127.0.0.1:0").unwrap(), says)
}

fn greets(listener: TcpListener, says: &'static [u8]) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if says.is_empty() {
                kept.push(stream);
                continue;
            }
            let _ = stream.write_all(says);
            // What the client has said is read, so that the close is none by reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    address
}

/// Reads something of each client and closes, by a reset or in order.
pub fn closer(listener: TcpListener, reset: bool) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // What stays unread makes the close a reset.
                let _ = stream.read(&mut [0; 1]);
                if !reset {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            });
        }
    });
    address
}

/// A port whose queue of connections is full: the system answers nobody there.
pub struct Full {
    pub address: SocketAddr,
    _held: (OwnedFd, Vec<OwnedFd>),
}

impl Full {
    pub fn new(ip: Ipv4Addr) -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrV4::new(ip, 0)).unwrap();
        listen(&listener, 0).unwrap();
        let address = TcpListener::from(listener.try_clone().unwrap()).local_addr().unwrap();
        let waiting = (0..8).map(|_| {
            let client = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            rustix::io::ioctl_fionbio(&client, true).unwrap();
            let SocketAddr::V4(at) = address else { unreachable!() };
            let _ = connect(&client, &at);
            client
        });
        let waiting = waiting.collect();
        Self { address, _held: (listener, waiting) }
    }
}

/// A port at which nobody listens, for as long as the value lives.
pub struct Closed(ports::Lease);

impl Closed {
    pub fn new() -> Self {
        Self(ports::one())
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}
