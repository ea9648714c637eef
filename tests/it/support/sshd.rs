//! A real OpenSSH server with keys and a configuration of its own, at one address.
use super::home::Home;
use super::ports::{self, Lease};
use super::process::{Process, descendants, run, signal_pid};
use super::{PATIENCE, is_root, program, wait_until};
use rustix::process::Signal;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

/// A key pair made by `ssh-keygen`.
pub fn keygen(file: &Path) {
    let mut command = Command::new("ssh-keygen");
    run(command.args(["-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f"]).arg(file)).ok();
}

/// The login name of this process.
pub fn login() -> String {
    run(Command::new("id").arg("-un")).ok().stdout.trim().to_owned()
}

/// A server whose logins find the home, the identity and the binaries of one host.
pub struct Sshd {
    port: Lease,
    address: IpAddr,
    process: Option<Process>,
    host_key: String,
}

impl Sshd {
    /// Prepares and starts a server at `address`; it lives in `<home>/sshd`, and logins get the home's environment.
    pub fn start(home: &Home, address: IpAddr) -> Self {
        let port = ports::one();
        let dir = home.file("sshd");
        std::fs::create_dir_all(&dir).unwrap();
        keygen(&dir.join("host_key"));
        home.write("sshd/authorized_keys", "");
        home.write("sshd/config", config(home, &dir, address, port.port()));
        let host_key = std::fs::read_to_string(dir.join("host_key.pub")).unwrap();
        let mut sshd = Self { port, address, process: None, host_key };
        sshd.up(home);
        sshd
    }

    /// Starts the server again after [`Sshd::down`].
    pub fn up(&mut self, home: &Home) {
        if is_root() {
            // sshd's own chroot, which a machine that never started it lacks.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let config = home.file("sshd/config");
        let mut process =
            home.start("sshd/sshd", program("sshd").unwrap(), &["-D", "-e", "-f", config.to_str().unwrap()]);
        process.expect("Server listening on");
        self.process = Some(process);
    }

    /// Kills the server and its sessions, as a host that loses power would.
    pub fn down(&mut self) {
        let process = self.process.take().expect("sshd is up");
        for pid in descendants(process.pid()) {
            signal_pid(pid, Signal::KILL);
        }
        process.kill9();
        let at = self.at();
        wait_until("sshd refuses connections", PATIENCE, || TcpStream::connect(at).is_err());
    }

    /// Ends the server and its sessions and starts it at another address.
    pub fn move_to(&mut self, home: &Home, address: IpAddr) {
        let process = self.process.take().expect("sshd is up");
        descendants(process.pid()).into_iter().for_each(|pid| signal_pid(pid, Signal::KILL));
        process.kill9();
        let config = home.read("sshd/config");
        let (before, after) = (self.at(), SocketAddr::new(address, self.port.port()));
        home.write(
            "sshd/config",
            config.replace(&format!("ListenAddress {before}\n"), &format!("ListenAddress {after}\n")),
        );
        self.address = address;
        self.up(home);
    }

    /// The listener's process.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("sshd is up").pid()
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        (self.address, self.port.port()).into()
    }

    /// What a connection path to it is: `user@host:port`.
    pub fn destination(&self) -> String {
        format!("{}@{}:{}", login(), self.address, self.port.port())
    }

    /// Its line in a known_hosts file.
    pub fn known_host(&self) -> String {
        let key = self.host_key.split(' ').take(2).collect::<Vec<_>>().join(" ");
        format!("[{}]:{} {key}\n", self.address, self.port.port())
    }

    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }
}

/// Lets the holder of `public_key` log in.
pub fn authorize(home: &Home, public_key: &str) {
    let keys = home.read("sshd/authorized_keys");
    home.write("sshd/authorized_keys", format!("{keys}{}\n", public_key.trim()));
}

fn config(home: &Home, dir: &Path, address: IpAddr, port: u16) -> String {
    let dir = dir.display();
    // One line: a second SetEnv would not be read.
    let env = home.env().map(|(name, value)| format!(" {name}={value}")).collect::<String>();
    let listen = SocketAddr::new(address, port);
    format!(
        "ListenAddress {listen}\nHostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nAllowTcpForwarding yes\nX11Forwarding no\nPrintMotd no\nUseDNS no\n\
         LogLevel VERBOSE\nMaxStartups 100\nSetEnv{env}\n"
    )
}
