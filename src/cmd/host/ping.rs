use super::patience;
use crate::args::HostPingArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::remote::Remote;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde::Serialize;
use serde_json::json;
use stado_fleet::fault::{Blame, Class, Faulty};
use stado_fleet::link::{Knock, Link, LinkError, Stage};
use stado_fleet::name::ConnectionPath;
use std::time::Duration;
use tokio::task::JoinSet;

/// How one path answered.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tried {
    path: String,
    destination: String,
    /// `ok` or `failed`.
    status: &'static str,
    /// Until a session stood.
    session_ms: Option<f64>,
    /// Of a question in it.
    round_trip_ms: Option<f64>,
    error: Option<String>,
    #[serde(skip)]
    failure: Option<(Class, Blame)>,
    #[serde(skip)]
    stage: Option<Stage>,
}

/// `host ping`: every declared path, each for itself, told in the order in which they are tried.
pub(crate) async fn ping(args: HostPingArgs, env: &Env) -> Verb {
    let limit = patience(&args.timeout)?;
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let remote = Remote::of(&fleet, &answer.snapshot.valid.registry, &args.target)?;
    if remote.here {
        return here(&args, &remote, &fleet.link, limit).await;
    }
    remote.reachable()?;
    remote.say_waits();
    let tried = try_all(&fleet.link, remote.paths, limit).await;
    let first = tried.iter().find(|tried| tried.failure.is_none());
    let outcome = match first {
        Some(first) => {
            remote.record("observed", format!("answered over {}", first.path));
            Ok(Outcome::Done)
        }
        None => {
            let failure = unreached(&args.target, &tried);
            remote.record("unreachable", failure.message.clone());
            Err(failure)
        }
    };
    print(&args, &tried, first)?;
    outcome
}

/// This host, which needs no path to itself; those by which others reach it are told.
async fn here(args: &HostPingArgs, remote: &Remote<'_>, link: &Link, limit: Duration) -> Verb {
    let target = &remote.name;
    let tried = try_all(link, remote.paths, limit).await;
    if args.json {
        ui::json(&json!({"target": target, "status": "here", "over": null, "paths": tried}))?;
        return Ok(Outcome::Done);
    }
    ui::print(&tried.iter().map(ToString::to_string).collect::<String>())?;
    let paths = if tried.is_empty() { ", and declares no SSH connection path" } else { "" };
    ui::line(format_args!("{target} is this host{paths}"))?;
    Ok(Outcome::Done)
}

fn print(args: &HostPingArgs, tried: &[Tried], first: Option<&Tried>) -> Result<(), Failure> {
    if args.json {
        let status = if first.is_some() { "reached" } else { "unreachable" };
        return ui::json(&json!({
            "target": args.target, "status": status, "over": first.map(|first| &first.path), "paths": tried,
        }));
    }
    ui::print(&tried.iter().map(ToString::to_string).collect::<String>())?;
    match first {
        Some(first) => ui::line(format_args!("{} is reached over {}", args.target, first.path)),
        None => Ok(()),
    }
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, destination, session_ms, round_trip_ms, error, .. } = self;
        match (error, session_ms, round_trip_ms) {
            (Some(error), ..) => writeln!(f, "{path}  {destination}  failed: {}", ui::clean::line(error)),
            (None, session, trip) => {
                let (session, trip) = (session.unwrap_or_default(), trip.unwrap_or_default());
                writeln!(f, "{path}  {destination}  ok: a session in {session:.1}ms, a round trip in {trip:.1}ms")
            }
        }
    }
}

/// Tries every path at the same time, so that a dead one delays no other; the result is in the declared order.
pub(crate) async fn try_all(link: &Link, paths: &[ConnectionPath], limit: Duration) -> Vec<Tried> {
    let mut tries = JoinSet::new();
    for (at, path) in paths.iter().cloned().enumerate() {
        let link = link.clone();
        tries.spawn(async move {
            let late = || {
                let sentence = format!("no session within {}s", limit.as_secs_f64());
                Err(LinkError::new(Stage::Connect, Class::Timeout, sentence))
            };
            let knocked = tokio::time::timeout(limit, link.knock(&path)).await.unwrap_or_else(|_| late());
            (at, tried(&path, knocked))
        });
    }
    let mut all = tries.join_all().await;
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, tried)| tried).collect()
}

fn tried(path: &ConnectionPath, knocked: Result<Knock, LinkError>) -> Tried {
    let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let knock = knocked.as_ref().ok();
    let error = knocked.as_ref().err();
    Tried {
        path: path.name.clone(),
        destination: path.destination.to_string(),
        status: if knock.is_some() { "ok" } else { "failed" },
        session_ms: knock.map(|knock| millis(knock.session)),
        round_trip_ms: knock.map(|knock| millis(knock.round_trip)),
        error: error.map(ToString::to_string),
        failure: error.map(|error| (error.class(), error.blame())),
        stage: error.map(|error| error.stage),
    }
}

impl Tried {
    /// Whether it carries a session.
    pub(crate) fn answered(&self) -> bool {
        self.failure.is_none()
    }

    /// Why it does not.
    pub(crate) fn error(&self) -> &str {
        self.error.as_deref().unwrap_or_default()
    }

    /// How far it came.
    pub(crate) fn stage(&self) -> Option<Stage> {
        self.stage
    }
}

/// All failures as one: of their class when they share it; a path that was down may be back on the next attempt.
pub(crate) fn unreached(target: &str, tried: &[Tried]) -> Failure {
    let causes: Vec<String> =
        tried.iter().map(|t| format!("{}: {}", t.path, t.error.as_deref().unwrap_or_default())).collect();
    let mut failures = tried.iter().filter_map(|t| t.failure);
    let first = failures.next().unwrap_or((Class::InfraDown, Blame::Remote));
    let (class, blame) =
        if failures.all(|(class, _)| class == first.0) { first } else { (Class::InfraDown, Blame::Remote) };
    let sentence = format!("no SSH connection path of {target} answered ({})", causes.join("; "));
    Failure::new(class, blame, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &str, class: Class) -> Tried {
        let path = ConnectionPath { name: name.into(), destination: "ops@192.0.2.1".parse().unwrap() };
        tried(&path, Err(LinkError::new(Stage::Connect, class, "why")))
    }

    #[test]
    fn all_failures_are_one_of_their_common_class() {
        let both = unreached("w", &[failed("primary", Class::Auth), failed("lan", Class::Auth)]);
        assert_eq!(both.class, Class::Auth);
        assert_eq!(both.message, "no SSH connection path of w answered (primary: why; lan: why)");
        let mixed = unreached("w", &[failed("primary", Class::Auth), failed("lan", Class::InfraDown)]);
        assert_eq!(mixed.class, Class::InfraDown);
    }

    #[test]
    fn a_line_tells_times_or_the_reason() {
        let path = ConnectionPath { name: "lan".into(), destination: "ops@192.0.2.1:22".parse().unwrap() };
        let knock = Knock { session: Duration::from_micros(12_340), round_trip: Duration::from_micros(456) };
        let line = tried(&path, Ok(knock)).to_string();
        assert_eq!(line, "lan  ops@192.0.2.1:22  ok: a session in 12.3ms, a round trip in 0.5ms\n");
        assert_eq!(failed("primary", Class::Auth).to_string(), "primary  ops@192.0.2.1  failed: why\n");
    }
}
