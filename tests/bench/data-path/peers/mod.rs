//! The proxies, each with the same frontends in front of the same servers.
mod files;
mod haproxy;
mod nginx;
pub mod stado;

use crate::lines::{Line, Results};
use crate::process::Tree;
use crate::servers::{Servers, listen};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// No proxy: what the others are a share of.
    Direct,
    Stado,
    Haproxy,
    /// haproxy with `option splice-auto`.
    HaproxySplice,
    Nginx,
    Socat,
    TokioCopy,
}

/// Who a proxy runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Own,
    Nobody,
}

/// A frontend and the server that it leads to.
pub type Pair = (SocketAddr, SocketAddr);

/// A running proxy.
pub struct Proxy {
    pub subject: Subject,
    pub user: User,
    /// `None` without a proxy.
    pub tree: Option<Tree>,
    pub sink: SocketAddr,
    pub source: SocketAddr,
    /// Two, since a service of Stado takes 4,096 connections.
    pub echoes: [SocketAddr; 2],
    /// Leads to `server`, whose connections the harness accepts by hand.
    pub by_hand: SocketAddr,
    pub server: TcpListener,
    _home: tempfile::TempDir,
}

impl Subject {
    pub const ALL: [Self; 7] =
        [Self::Direct, Self::Stado, Self::Haproxy, Self::HaproxySplice, Self::Nginx, Self::Socat, Self::TokioCopy];
    /// What a target's "best peer" is the best of.
    pub const PEERS: [Self; 4] = [Self::Haproxy, Self::HaproxySplice, Self::Nginx, Self::Socat];

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Stado => "stado",
            Self::Haproxy => "haproxy",
            Self::HaproxySplice => "haproxy-splice",
            Self::Nginx => "nginx",
            Self::Socat => "socat",
            Self::TokioCopy => "tokio-copy",
        }
    }

    /// Its version; `None` where it is not installed.
    pub fn version(self) -> Option<String> {
        match self {
            Self::Direct => Some(String::new()),
            Self::Stado => Some(env!("CARGO_PKG_VERSION").to_owned()),
            Self::TokioCopy => Some("tokio 1".to_owned()),
            Self::Haproxy | Self::HaproxySplice => first_line("haproxy", &["-v"]),
            Self::Nginx => nginx::module().and(first_line("nginx", &["-v"])),
            Self::Socat => version_of_socat(),
        }
    }

    /// Whether the lines of an ordinary user are of interest: only splicing depends on who runs it.
    pub fn has_user_line(self) -> bool {
        matches!(self, Self::Direct | Self::Stado | Self::Haproxy | Self::HaproxySplice)
    }

    /// Starts it in front of `servers`; `None`, with a line, when it does not come up.
    pub fn start(self, servers: &Servers, user: User) -> Option<Proxy> {
        let home = files::home(user);
        let (server, server_address) = listen();
        let backends = [servers.sink, servers.source, servers.echo(), servers.echo(), server_address];
        let fronts = if self == Self::Direct { backends } else { free_addresses() };
        let pairs: Vec<Pair> = fronts.into_iter().zip(backends).collect();
        let started = self.command(home.path(), &pairs).map(|command| spawn(command, home.path(), user));
        let (mut tree, fronts) = match started {
            None => (None, fronts),
            Some(tree) if self == Self::Stado => {
                let fronts = stado::register(home.path(), &backends);
                (Some(tree), fronts)
            }
            Some(tree) => (Some(tree), fronts),
        };
        if !fronts.iter().all(|front| comes_up(*front, tree.as_mut())) {
            println!("{} did not come up: left out; {}", self.name(), files::last_words(home.path()));
            return None;
        }
        // The connection that asked whether the server by hand is there.
        let _ = server.accept();
        let [sink, source, echo, second, by_hand] = fronts;
        let echoes = [echo, second];
        Some(Proxy { subject: self, user, tree, sink, source, echoes, by_hand, server, _home: home })
    }

    fn command(self, home: &std::path::Path, pairs: &[Pair]) -> Option<Command> {
        match self {
            Self::Direct => None,
            Self::Stado => Some(stado::command(home)),
            Self::Haproxy => Some(haproxy::command(home, pairs, false)),
            Self::HaproxySplice => Some(haproxy::command(home, pairs, true)),
            Self::Nginx => Some(nginx::command(home, pairs)),
            Self::Socat => Some(socat(pairs)),
            Self::TokioCopy => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.arg("--baseline").args(pairs.iter().map(|(front, back)| format!("{front}={back}")));
                Some(command)
            }
        }
    }
}

/// One socat a pair, under one shell so that they are one tree.
fn socat(pairs: &[Pair]) -> Command {
    let one = |(front, back): &Pair| {
        let port = front.port();
        format!(
            "socat -b 131072 TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=1024 TCP:{back},nodelay & "
        )
    };
    let mut command = Command::new("sh");
    command.args(["-c", &(pairs.iter().map(one).collect::<String>() + "wait")]);
    command
}

fn spawn(mut command: Command, home: &std::path::Path, user: User) -> Tree {
    let log = std::fs::File::create(home.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).current_dir(home);
    if user == User::Nobody {
        // nobody and nogroup.
        command.uid(files::NOBODY).gid(files::NOBODY);
    }
    Tree::new(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// Waits until somebody accepts there; `false` when the process has ended instead.
fn comes_up(address: SocketAddr, mut tree: Option<&mut Tree>) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if let Ok(mut stream) = TcpStream::connect(address) {
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            let _ = stream.read(&mut [0]);
            return true;
        }
        if tree.as_mut().is_some_and(|tree| tree.has_ended()) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Addresses that could be bound a moment ago.
fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    let held: Vec<_> = (0..N).map(|_| listen()).collect();
    std::array::from_fn(|n| held[n].1)
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words = text.lines().next()?.split([' ', '/']);
    words.map(str::to_owned).find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

fn version_of_socat() -> Option<String> {
    let output = Command::new("socat").arg("-V").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| Some(line.strip_prefix("socat version ")?.split(' ').next()?.to_owned()))
}

/// What 1,000 services add to an idle process.
pub fn listeners(subject: Subject, results: &mut Results) {
    const MANY: usize = 1000;
    let few = idle_memory(subject, 1);
    let many = idle_memory(subject, MANY + 1);
    if let (Some(few), Some(many)) = (few, many) {
        results.add(Line::Listeners, subject, many.saturating_sub(few) as f64 / 1e6);
    }
}

fn idle_memory(subject: Subject, services: usize) -> Option<u64> {
    let home = files::home(User::Own);
    if subject == Subject::Stado {
        return Some(stado::start_remembered(services).memory);
    }
    if !matches!(subject, Subject::Haproxy | Subject::Nginx) {
        return None;
    }
    let (_server, back) = listen();
    let held: Vec<_> = (0..services).map(|_| listen()).collect();
    let pairs: Vec<Pair> = held.iter().map(|(_, front)| (*front, back)).collect();
    drop(held);
    let mut tree = spawn(subject.command(home.path(), &pairs)?, home.path(), User::Own);
    if !comes_up(pairs.last()?.0, Some(&mut tree)) {
        println!("{} did not come up with {services} listeners: {}", subject.name(), files::last_words(home.path()));
        return None;
    }
    std::thread::sleep(Duration::from_millis(500));
    Some(tree.memory())
}
