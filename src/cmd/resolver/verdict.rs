//! What `resolver status` concludes from what it has seen (fleet contract §4.10). Pure: facts and `now` in, report out.
use super::blockers;
use super::pulse::Pulse;
use super::routes::{self, Place, Route};
use super::silent;
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::authority::Heard;
use stado_fleet::ledger::{self, AnswersFile, LinkState, Publisher, RefusedRegistry, ResolverState, RouteState, Wait};
use std::path::PathBuf;
use std::time::Duration;

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Host that is reported on; `None` for a mesh without a fleet.
    pub(crate) target: Option<String>,
    /// This host, as it calls itself.
    pub(crate) here: String,
    /// Whether the target is this host; only then were its binds tried.
    pub(crate) is_here: bool,
    /// Who published, if anybody.
    pub(crate) publisher: Publisher,
    /// Where the state is published.
    pub(crate) state_file: PathBuf,
    /// Whether the resolver that runs answers; `None` when none runs, or it has nothing that could be asked.
    pub(crate) pulse: Option<Pulse>,
    /// Version of this program.
    pub(crate) version: &'static str,
    /// The waiting list.
    pub(crate) waits: Result<Vec<Wait>, String>,
    /// What went through the adapters.
    pub(crate) routes: Vec<RouteState>,
    /// Since when services have answered, or not.
    pub(crate) answers: AnswersFile,
    /// What other hosts said last, where this host is the authority.
    pub(crate) heard: Vec<Heard>,
    /// Published files that could not be read and are not needed for a verdict.
    pub(crate) unread: Vec<String>,
    /// What the registry declares for the target; `None` for a mesh without a fleet.
    pub(crate) policy: Option<Policy>,
    /// The resolution API, when known, and whether somebody listens there.
    pub(crate) api: Option<(String, Option<bool>)>,
    /// Who listens there although no resolver runs.
    pub(crate) api_stranger: Option<String>,
    /// Declared adapters.
    pub(crate) adapters: Vec<Adapter>,
    /// How the registry was read.
    pub(crate) authority: Authority,
    /// Age of the copy that was read instead of the authority.
    pub(crate) registry_staleness_seconds: Option<u64>,
}

/// The declared intervals, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) refresh_seconds: u64,
    pub(crate) max_stale_seconds: u64,
}

/// One declared adapter.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Adapter {
    pub(crate) service: String,
    pub(crate) consumer: String,
    /// `None` for an adapter that was given no port yet.
    pub(crate) bind: Option<String>,
    /// `None` when it was not tried.
    pub(crate) listening: Option<bool>,
    /// Who listens there although no resolver runs.
    #[serde(skip)]
    pub(crate) stranger: Option<String>,
    /// Where the directory places its service.
    #[serde(skip)]
    pub(crate) place: Option<Place>,
}

impl Adapter {
    pub(super) fn shown_bind(&self) -> &str {
        self.bind.as_deref().unwrap_or("a port that was not handed out yet")
    }
}

/// The resolver that runs (an addition of Stado).
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Running {
    /// Its version, when it says one.
    pub(crate) version: Option<String>,
    pub(crate) started_at: Option<String>,
    /// Whether its resolution API answers; null when it has none.
    pub(crate) answering: Option<bool>,
    /// Whether a signal has stopped it.
    pub(crate) stopped: bool,
}

/// How the authority answered.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Authority {
    pub(crate) target: Option<String>,
    /// `local` or `ssh`.
    pub(crate) source: &'static str,
    pub(crate) reachable: bool,
    pub(crate) generation: Option<u64>,
    pub(crate) detail: Option<String>,
    /// Authority epoch of the registry that was read, from 1 on (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
}

/// The resolution API.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Api {
    pub(crate) bind: Option<String>,
    pub(crate) listening: Option<bool>,
}

/// One wait with its age.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Waiting {
    #[serde(flatten)]
    pub(crate) wait: Wait,
    pub(crate) waited_seconds: u64,
}

/// The answer; field order is the order of the JSON.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) target: Option<String>,
    pub(crate) state: String,
    pub(crate) pid: Option<u32>,
    pub(crate) updated_at: Option<String>,
    pub(crate) api: Api,
    pub(crate) bind_probe: String,
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) waiting_opens: Vec<Waiting>,
    pub(crate) authority: Authority,
    pub(crate) generation: Option<u64>,
    pub(crate) generation_age_seconds: Option<u64>,
    pub(crate) max_stale_seconds: Option<u64>,
    pub(crate) stale: bool,
    pub(crate) registry_staleness_seconds: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) attempt: u64,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) verdict: &'static str,
    pub(crate) blockers: Vec<String>,
    /// Things worth saying that stand in nobody's way (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// Daemons that were taken over and still have streams (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaving: Vec<ledger::Leaving>,
    /// How streams reach each host that was asked for (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<LinkState>,
    /// Where the object API is that the daemon serves (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_api: Option<String>,
    /// How changes of the registry are heard of (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<String>,
    /// Authority epoch of the registry held, from 1 on (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
    /// The registry that was read last and is not taken into force (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedRegistry>,
    /// The resolver that runs (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) daemon: Option<Running>,
    /// Each adapter's route (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<Route>,
}

impl Facts {
    /// Who published here, when it still runs: what is published here speaks of this host only.
    pub(super) fn alive(&self) -> Option<&ResolverState> {
        self.publisher.alive().filter(|_| self.is_here)
    }

    /// The interval after which a wait is long.
    pub(super) fn refresh(&self) -> Duration {
        self.policy.map_or(ledger::UNDECLARED_REFRESH, |policy| Duration::from_secs(policy.refresh_seconds))
    }

    /// The waits that are held: a list whose publisher is gone holds nobody.
    pub(super) fn waits(&self) -> &[Wait] {
        match &self.waits {
            Ok(waits) if self.alive().is_some() => waits,
            _ => &[],
        }
    }

    /// Those of them that are longer than the interval, the oldest first.
    pub(super) fn held_waits(&self, now: Timestamp) -> Vec<&Wait> {
        ledger::overdue(self.waits(), now, self.refresh())
    }
}

/// Concludes.
pub(crate) fn conclude(mut facts: Facts, now: Timestamp) -> Report {
    // A stranger at a port of the resolver is not the resolver.
    if let (Some((_, listening)), Some(_)) = (&mut facts.api, &facts.api_stranger) {
        *listening = Some(false);
    }
    for adapter in facts.adapters.iter_mut().filter(|adapter| adapter.stranger.is_some()) {
        adapter.listening = Some(false);
    }
    let alive = facts.alive().cloned();
    let generation = alive.as_ref().and_then(|s| s.generation);
    let age = alive.as_ref().and_then(|s| seconds_since(s.loaded_at.as_deref()?, now));
    let too_old = facts.policy.zip(age).is_some_and(|(policy, age)| age > policy.max_stale_seconds);
    // Who holds no generation at all says so too: a mesh alone, and a host that has read no registry yet.
    let stale = generation.is_none() || facts.authority.generation > generation || too_old;
    let blockers = blockers::blockers(&facts, generation, age, now);
    let down = blockers::down(&facts);
    let routes = match facts.is_here {
        true => routes::routes(&facts, alive.as_ref(), down.as_deref(), now),
        false => Vec::new(),
    };
    let warnings = warnings(&facts, alive.as_ref(), &routes, now);
    let (api_bind, api_listening) = facts.api.clone().map_or((None, None), |(bind, seen)| (Some(bind), seen));
    let state = alive.as_ref().map_or_else(|| "unpublished".to_owned(), |s| s.state.clone());
    let verdict = match blockers.is_empty() {
        true => "ready",
        // An API that was not tried is not known to be down.
        false if api_listening == Some(false) && state != "serving" => "down",
        false => "degraded",
    };
    let waiting = |wait: &Wait| Waiting { waited_seconds: ledger::waited_seconds(wait, now), wait: wait.clone() };
    let waiting_opens = facts.waits().iter().map(waiting).collect();
    Report {
        target: facts.target.clone(),
        pid: alive.as_ref().map(|s| s.pid),
        updated_at: facts.publisher.last().filter(|_| facts.is_here).map(|s| s.updated_at.clone()),
        api: Api { bind: api_bind, listening: api_listening },
        bind_probe: bind_probe(&facts),
        waiting_opens,
        daemon: alive.as_ref().map(|state| running(state, facts.pulse)),
        adapters: facts.adapters,
        authority: facts.authority,
        generation,
        generation_age_seconds: age,
        max_stale_seconds: facts.policy.map(|p| p.max_stale_seconds),
        stale,
        registry_staleness_seconds: facts.registry_staleness_seconds,
        reason: alive.as_ref().and_then(|s| s.reason.clone()),
        attempt: alive.as_ref().map_or(0, |s| s.attempt),
        next_attempt_at: alive.as_ref().and_then(|s| s.next_attempt_at.clone()),
        leaving: alive.as_ref().map(|s| s.leaving.clone()).unwrap_or_default(),
        object_api: alive.as_ref().and_then(|s| s.object_api.clone()),
        changes: alive.as_ref().and_then(|s| s.changes.clone()),
        epoch: alive.as_ref().and_then(|s| s.epoch),
        refused: alive.as_ref().and_then(|s| s.refused.clone()),
        links: alive.map(|s| s.links).unwrap_or_default(),
        warnings,
        state,
        verdict,
        blockers,
        routes,
    }
}

fn running(state: &ResolverState, pulse: Option<Pulse>) -> Running {
    Running {
        version: state.version.clone(),
        started_at: state.started_at.clone(),
        answering: pulse.map(|pulse| pulse == Pulse::Answers),
        stopped: pulse == Some(Pulse::Silent { stopped: true }),
    }
}

/// What is worth saying and stands in nobody's way: of the resolver, of its version, of routes and services that fail.
fn warnings(facts: &Facts, alive: Option<&ResolverState>, routes: &[Route], now: Timestamp) -> Vec<String> {
    let mut all = alive.map(|state| state.warnings.clone()).unwrap_or_default();
    if let Some(state) = alive
        && let Some(version) = state.version.as_deref().filter(|version| *version != facts.version)
    {
        all.push(format!(
            "the resolver (pid {}) is version {version} and this command is version {}: what is new in one of them is not \
             known to the other; `stado resolver restart` runs the installed one",
            state.pid, facts.version
        ));
    }
    all.extend(routes.iter().filter_map(Route::warning));
    if facts.is_here {
        let answers = facts.answers.iter();
        all.extend(answers.filter_map(|(service, row)| ledger::unanswered_sentence(service, row, facts.refresh())));
    }
    all.extend(silent::sentence(&facts.heard, now));
    all.extend(facts.unread.iter().cloned());
    all
}

fn seconds_since(text: &str, now: Timestamp) -> Option<u64> {
    let at: Timestamp = text.parse().ok()?;
    Some(u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0))
}

fn bind_probe(facts: &Facts) -> String {
    let target = facts.target.as_deref().unwrap_or(&facts.here);
    if facts.is_here {
        format!("probed: these binds are loopback addresses on {target}, which is this host")
    } else {
        format!(
            "not probed: these binds are loopback addresses on {target}, and this command ran on {}; ask that host with \
             `stado host inventory {target}`",
            facts.here
        )
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
