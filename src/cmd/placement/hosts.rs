//! Shell text said to hosts: over the link, or to this host's own shell.
use super::registry::lost;
use crate::cmd::fleet::Fleet;
use crate::cmd::remote::Remote;
use crate::exit::Failure;
use crate::ui;
use stado_fleet::document::{Registry, Target};
use stado_fleet::fault::{Blame, Class};
use stado_fleet::link::{ExecLimits, LinkError, RemoteStream};
use stado_fleet::name::TargetName;
use stado_fleet::placement::{PlacementError, Probe, probe, shell};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, join, sink};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

/// Bytes of an answer.
const ANSWER: usize = 1 << 20;
/// For a connection to a host, and for the start of a command there.
const OPEN: Duration = Duration::from_secs(30);
/// For what the destination says after the last byte of state: it may have much to write, and to read again.
const SETTLE: Duration = Duration::from_secs(6 * 3600);
/// Between two attempts of a probe.
const AGAIN: Duration = Duration::from_millis(200);
/// One attempt of a probe.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The hosts of a transaction.
pub(super) struct Hosts<'f> {
    pub(super) fleet: &'f Fleet,
    pub(super) registry: Arc<Registry>,
    pub(super) me: Option<TargetName>,
    /// A host that is gone for good: nothing is said to it.
    pub(super) without: Option<String>,
}

impl Hosts<'_> {
    /// Runs a script to its end; what it printed. `doing` is for the sentence.
    pub(super) async fn run(
        &self,
        host: &str,
        script: &str,
        within: Duration,
        doing: &str,
    ) -> Result<String, PlacementError> {
        if self.without.as_deref() == Some(host) {
            ui::note(format_args!("{doing} on {host} is left out"));
            return Ok(String::new());
        }
        let told = |failure: Failure| {
            let error = lost(failure);
            let sentence = format!("{doing} on {host}: {error}");
            error.saying(sentence)
        };
        let remote = Remote::of(self.fleet, &self.registry, host).map_err(lost)?;
        let limits = ExecLimits { stdout: ANSWER, deadline: within };
        let line = if remote.here { script.to_owned() } else { shell::command(script) };
        let output = remote.exec(&line, b"", limits).await.map_err(told)?;
        match output.status {
            Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            _ if output.cut => Err(PlacementError::failed(format!("{doing} on {host}: it says too much"))),
            _ => Err(PlacementError::failed(format!("{doing} on {host}: {}", shell::last_words(&output.stderr)))),
        }
    }

    /// Lets what one script prints be read by another on another host; what that one printed.
    pub(super) async fn pipe(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        doing: &str,
    ) -> Result<String, PlacementError> {
        let mut source = self.start(from.0, from.1, doing).await?;
        let mut destination = self.start(to.0, to.1, doing).await?;
        let copied = tokio::io::copy(&mut source, &mut destination).await;
        let _ = destination.shutdown().await;
        let mut said = Vec::new();
        let mut words = (&mut destination).take(ANSWER as u64);
        let heard = timeout(SETTLE, words.read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        let failed = |why: String| {
            Err(PlacementError { class: Class::InfraDown, blame: Blame::Remote, ..PlacementError::failed(why) })
        };
        match (copied, heard) {
            (Ok(_), Ok(Ok(_))) => Ok(said),
            // What the destination says of itself is nearer to the cause than the broken pipe that followed.
            (Err(_), _) if !said.trim().is_empty() => {
                failed(format!("{doing} to {}: {}", to.0, shell::last_words(said.as_bytes())))
            }
            (Err(e), _) => failed(format!("{doing} from {} to {}: {e}", from.0, to.0)),
            (_, Ok(Err(e))) => failed(format!("{doing} to {}: {e}", to.0)),
            (_, Err(_)) => Err(late(doing, to.0, SETTLE)),
        }
    }

    async fn start(&self, host: &str, script: &str, doing: &str) -> Result<Pin<Box<dyn RemoteStream>>, PlacementError> {
        let target = self.target(host)?;
        if !self.is_here(target) {
            let stream = self.fleet.link.exec_stream(&target.name, &target.paths, &shell::command(script), OPEN).await;
            return stream.map_err(|e| unreached(doing, host, &e));
        }
        let mut command = local(script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |e: std::io::Error| PlacementError::failed(format!("{doing} on {host}: /bin/sh: {e}"));
        let mut child = command.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // It ends with its pipes.
        tokio::spawn(async move { child.wait().await });
        match (stdin, stdout) {
            (Some(stdin), Some(stdout)) => Ok(Box::pin(join(stdout, stdin))),
            (_, Some(stdout)) => Ok(Box::pin(join(stdout, sink()))),
            _ => Err(PlacementError::failed(format!("{doing} on {host}: /bin/sh has no output"))),
        }
    }

    /// Waits until a probe succeeds on its host, for as long as it says.
    pub(super) async fn answers(&self, host: &str, probe: &Probe) -> Result<(), PlacementError> {
        if self.without.as_deref() == Some(host) {
            return Ok(());
        }
        let until = Instant::now() + probe.within;
        loop {
            let why = match self.answers_now(host, probe).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if Instant::now() >= until {
                let (service, url, seconds) = (&probe.service, &probe.url, probe.within.as_secs());
                let sentence = format!("{service} does not answer at {url} on {host} within {seconds}s: {why}");
                return Err(PlacementError::failed(sentence));
            }
            sleep(AGAIN).await;
        }
    }

    async fn answers_now(&self, host: &str, probe: &Probe) -> Result<(), String> {
        let mut why = String::new();
        for address in probe.addresses() {
            let attempt = async { probe::ask(probe, self.connect(host, address).await?).await };
            match timeout(ATTEMPT, attempt).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(e)) => why = e,
                Err(_) => why = format!("no answer within {}s", ATTEMPT.as_secs()),
            }
        }
        Err(why)
    }

    /// Whether anybody listens where a probe asks.
    pub(super) async fn listens(&self, host: &str, probe: &Probe) -> bool {
        for address in probe.addresses() {
            if matches!(timeout(ATTEMPT, self.connect(host, address)).await, Ok(Ok(_))) {
                return true;
            }
        }
        false
    }

    /// A connection to an address as the host sees it.
    async fn connect(&self, host: &str, address: SocketAddr) -> Result<Pin<Box<dyn RemoteStream>>, String> {
        let target = self.target(host).map_err(|e| e.sentence)?;
        if self.is_here(target) {
            return Ok(Box::pin(TcpStream::connect(address).await.map_err(|e| e.to_string())?));
        }
        self.fleet.link.open(&target.name, &target.paths, address, ATTEMPT).await.map_err(|e| e.to_string())
    }

    fn target(&self, host: &str) -> Result<&Target, PlacementError> {
        let target = self.registry.targets.values().find(|target| target.name.as_str() == host);
        target.ok_or_else(|| PlacementError::config(format!("target '{host}' is not in the canonical registry")))
    }

    fn is_here(&self, target: &Target) -> bool {
        self.me.as_ref() == Some(&target.name)
    }
}

fn local(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script);
    command
}

fn late(doing: &str, host: &str, within: Duration) -> PlacementError {
    let sentence = format!("{doing} on {host} did not end within {}s", within.as_secs());
    PlacementError { class: Class::Timeout, blame: Blame::Remote, ..PlacementError::failed(sentence) }
}

fn unreached(doing: &str, host: &str, e: &LinkError) -> PlacementError {
    PlacementError { sentence: format!("{doing} on {host}: {e}"), ..PlacementError::of(e) }
}
