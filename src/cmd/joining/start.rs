//! The resolver of this host after it has begun, joined or left a fleet: started, or started again, and seen to serve.
use super::here;
use crate::args::FleetPlace;
use crate::cmd::resolver;
use crate::config::{Env, HostConfig};
use crate::exit::Failure;
use crate::ui;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::ledger::{self, Publisher, ResolverState};
use stado_fleet::name::TargetName;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LOOK: Duration = Duration::from_millis(50);
/// For a resolver to serve what the registry says.
const PATIENCE: Duration = Duration::from_secs(30);
/// For a resolver to let its streams end and to start again.
const RESTART: Duration = Duration::from_secs(60);

/// What became of the resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Started {
    /// It ran already, with nothing new to read.
    Ran,
    /// It was started again.
    Again,
    /// A service manager runs it from now on.
    Installed,
    /// It was started, and its log is there.
    Now(PathBuf),
    /// Nobody wanted it; the command that does it.
    Not,
}

impl Started {
    pub(super) fn runs(&self) -> bool {
        *self != Self::Not
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Ran => "running",
            Self::Again => "restarted",
            Self::Installed => "installed",
            Self::Now(_) => "started",
            Self::Not => "not started",
        }
    }
}

/// Says what became of it, and what comes next.
pub(super) fn say(started: &Started, next: &str) {
    match started {
        Started::Ran | Started::Again => {}
        Started::Installed => {
            ui::note("the service manager runs its resolver from now on (`stado resolver uninstall` ends that)")
        }
        Started::Now(log) => ui::note(format_args!(
            "started its resolver, since no service manager runs for this account; after a restart of this host it has to be \
             started again (`stado resolver serve`). Its log is {}",
            log.display()
        )),
        Started::Not => ui::note("start its resolver: `stado resolver serve`"),
    }
    ui::note(next);
}

/// Sees to it that the resolver of this home runs with what was just written. `changed`: what it reads at its start.
pub(super) async fn ensure(env: &Env, place: &FleetPlace, changed: bool) -> Result<Started, Failure> {
    let host = HostConfig::read(env, None)?;
    let alive = matches!(ledger::publisher(&host.published)?, Publisher::Alive(_));
    match (alive, place.no_start) {
        (true, _) if changed => again(env).await.map(|_| Started::Again),
        (true, _) => Ok(Started::Ran),
        (false, true) => Ok(Started::Not),
        (false, false) => {
            if resolver::installed(env).await? {
                return begun(&host, None).await.map(|()| Started::Installed);
            }
            detached(&host).await.map(Started::Now)
        }
    }
}

/// Looks until there is something to see, for as long as it may take; then `late` says what is missing.
async fn seen<T>(
    mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
    late: impl FnOnce() -> Result<String, Failure>,
) -> Result<T, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await? {
            return Ok(seen);
        }
        if Instant::now() >= until {
            return Err(Failure::new(Class::Timeout, Blame::ThisHost, late()?));
        }
        sleep(LOOK).await;
    }
}

/// Waits until the resolver that was started has published. `child`: it is a child of this process, with its log.
async fn begun(host: &HostConfig, mut child: Option<(&mut Child, &Path)>) -> Result<(), Failure> {
    let log = child.as_ref().map(|(_, log)| log.display().to_string());
    let look = async || {
        if let Some((child, log)) = &mut child {
            ended(child, log)?;
        }
        Ok(published(host)?.filter(|state| state.state != "starting").map(drop))
    };
    seen(look, || {
        Ok(match log {
            Some(log) => format!("the resolver has not begun to serve; its log is {log}"),
            None => "the service manager was told to run the resolver, and it has not begun to serve; its log is in \
                     ~/.stado/logs"
                .to_owned(),
        })
    })
    .await
}

/// Starts the resolver again when one runs; whether one did.
pub(super) async fn again(env: &Env) -> Result<bool, Failure> {
    let host = HostConfig::read(env, None)?;
    if !matches!(ledger::publisher(&host.published)?, Publisher::Alive(_)) {
        return Ok(false);
    }
    resolver::restarted(RESTART, env).await.map(|_| true)
}

/// Runs the resolver as a process of its own that outlives this one and its terminal.
async fn detached(host: &HostConfig) -> Result<PathBuf, Failure> {
    let log = host.stado_home.join("resolver.log");
    let mut command = Command::new("nohup");
    command.arg(here::program()?).args(["resolver", "serve"]);
    let out = std::fs::File::options().create(true).append(true).open(&log);
    let out = out.and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = out.map_err(|e| Failure::here(format!("cannot write {}: {e}", log.display())))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let child = command.spawn();
    let mut child =
        child.map_err(|e| Failure::here(format!("cannot start the resolver: {e}; run `stado resolver serve`")))?;
    begun(host, Some((&mut child, &log))).await?;
    Ok(log)
}

fn ended(child: &mut Child, log: &Path) -> Result<(), Failure> {
    match child.try_wait() {
        Ok(Some(status)) => {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let sentence = text.lines().rev().find_map(|line| line.strip_prefix("Error: "));
            let last = sentence.or_else(|| text.lines().last()).unwrap_or_default();
            let beside = match last.contains("could not bind") {
                true => {
                    "; beside another daemon of this machine it needs an `api_bind` of its own in ~/.stado/config.json"
                }
                false => "",
            };
            let log = log.display();
            Err(Failure::here(format!("the resolver ended at once ({status}): {last}{beside}; its log is {log}")))
        }
        _ => Ok(()),
    }
}

fn published(host: &HostConfig) -> Result<Option<ResolverState>, Failure> {
    Ok(ledger::publisher(&host.published)?.alive().cloned())
}

/// Waits until the resolver serves as `me` what it read from the authority; the generation.
pub(super) async fn serves(env: &Env, me: &TargetName) -> Result<u64, Failure> {
    let host = HostConfig::read(env, None)?;
    let look = async || {
        let state = published(&host)?;
        let serving = state.filter(|s| s.state == "serving" && s.target.as_deref() == Some(me.as_str()));
        Ok(serving.and_then(|state| state.generation))
    };
    seen(look, || {
        let why = published(&host)?.and_then(|state| state.reason);
        let why = why.unwrap_or_else(|| "it has published no reason".into());
        Ok(format!("{me} is in the fleet, and its resolver does not serve it yet: {why}; see `stado resolver status`"))
    })
    .await
}

/// Waits until the gate takes connections.
pub(super) async fn gate_stands(env: &Env, bind: SocketAddr) -> Result<(), Failure> {
    let host = HostConfig::read(env, None)?;
    let ip = match bind.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let look = async || Ok(tokio::net::TcpStream::connect((ip, bind.port())).await.ok().map(drop));
    seen(look, || {
        let row = published(&host)?.and_then(|state| state.unserved.into_iter().find(|row| row.service == "gate"));
        let why = row.map_or_else(|| format!("nothing answers at {bind}"), |row| row.reason);
        Ok(format!("the gate of this host does not stand: {why}; see `stado resolver status`"))
    })
    .await
}
