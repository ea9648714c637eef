//! `resolver stop`, `resolver restart`: the resolver of this home is found by the lock that it holds.
use super::pulse::is_stopped;
use crate::args::LifeArgs;
use crate::config::{Env, HostConfig, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use stado_fleet::disk::Lock;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::ledger::{self, PublishedPaths};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LOOK: Duration = Duration::from_millis(50);

/// `resolver stop`: done when the resolver has given its lock back, or when none ran.
pub(crate) async fn stop(args: LifeArgs, env: &Env) -> Verb {
    let patience = patience(&args)?;
    let paths = HostConfig::read(env, None)?.published;
    let Some(pid) = holder(&paths)? else {
        ui::line("no resolver runs for this home")?;
        return Ok(Outcome::Done);
    };
    signal(pid, Signal::TERM)?;
    let deadline = Instant::now() + patience;
    while holder(&paths)? == Some(pid) {
        if Instant::now() >= deadline {
            stopped_by_a_signal(pid)?;
            return Err(late(format!(
                "the resolver (pid {n}) has not ended within {}s: it lets open streams end, at most for its shutdown_timeout; \
                 a second `stado resolver stop` ends them now",
                patience.as_secs(),
                n = pid.as_raw_nonzero()
            )));
        }
        sleep(LOOK).await;
    }
    ui::line(format_args!("stopped the resolver (pid {})", pid.as_raw_nonzero()))?;
    Ok(Outcome::Done)
}

/// `resolver restart`: the resolver lets its streams end and then runs its own command again, under the same pid.
pub(crate) async fn restart(args: LifeArgs, env: &Env) -> Verb {
    let pid = restarted(patience(&args)?, env).await?;
    ui::line(format_args!("restarted the resolver (pid {pid})"))?;
    Ok(Outcome::Done)
}

/// Restarts the resolver of this home, and waits until it has published again; its pid.
pub(crate) async fn restarted(patience: Duration, env: &Env) -> Result<i32, Failure> {
    let paths = HostConfig::read(env, None)?.published;
    let Some(pid) = holder(&paths)? else {
        return Err(Failure::not_found("no resolver runs for this home: start one with `stado resolver serve`"));
    };
    let before = started_at(&paths)?;
    signal(pid, Signal::USR2)?;
    let deadline = Instant::now() + patience;
    loop {
        let now = started_at(&paths)?;
        if now.is_some() && now != before {
            break;
        }
        if test_kill_process(pid).is_err() {
            return Err(Failure::here(format!(
                "the resolver (pid {}) ended and did not come back; its log says why",
                pid.as_raw_nonzero()
            )));
        }
        if Instant::now() >= deadline {
            stopped_by_a_signal(pid)?;
            return Err(late(format!(
                "the resolver (pid {}) has not started again within {}s; its log says whether it refused (restart_refused) \
                 or still lets streams end",
                pid.as_raw_nonzero(),
                patience.as_secs()
            )));
        }
        sleep(LOOK).await;
    }
    Ok(pid.as_raw_nonzero().get())
}

fn patience(args: &LifeArgs) -> Result<Duration, Failure> {
    parse_duration(&args.limit).ok_or_else(|| Failure::usage(format!("invalid --for duration {:?}", args.limit)))
}

fn holder(paths: &PublishedPaths) -> Result<Option<Pid>, Failure> {
    let Some(inside) = Lock::holder(&paths.lock)? else { return Ok(None) };
    if let Some(stranger) = inside.filter(|pid| !Lock::names(&paths.lock, *pid)) {
        // It is no resolver, or one that has only just begun: neither is to be signalled.
        return Err(Failure::here(format!(
            "{} is held by another process (pid {stranger}), which has not written its pid there: if it stays, end it by hand",
            paths.lock.display()
        )));
    }
    let pid = inside.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    pid.map(Some).ok_or_else(|| {
        Failure::here(format!(
            "{} is held, and no pid can be read in it: stop its holder by hand",
            paths.lock.display()
        ))
    })
}

fn signal(pid: Pid, signal: Signal) -> Result<(), Failure> {
    kill_process(pid, signal)
        .map_err(|e| Failure::here(format!("cannot signal the resolver (pid {}): {e}", pid.as_raw_nonzero())))
}

/// When the resolver that runs was started, once it has published.
fn started_at(paths: &PublishedPaths) -> Result<Option<String>, Failure> {
    let publisher = ledger::publisher(paths)?;
    let running = publisher.alive().filter(|state| !matches!(state.state.as_str(), "starting" | "stopped"));
    Ok(running.and_then(|state| state.started_at.clone()))
}

/// One that is stopped hears nothing but the two signals that are named.
fn stopped_by_a_signal(pid: Pid) -> Result<(), Failure> {
    let n = pid.as_raw_nonzero().get();
    match u32::try_from(n).is_ok_and(is_stopped) {
        false => Ok(()),
        true => Err(late(format!(
            "the resolver (pid {n}) is stopped by a signal, so that it does not hear this one: `kill -CONT {n}` lets it go on, \
             `kill -9 {n}` ends it now"
        ))),
    }
}

fn late(message: String) -> Failure {
    Failure::new(Class::Timeout, Blame::ThisHost, message)
}
