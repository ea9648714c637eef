//! What `stado status` concludes from what it has seen. Pure.
use super::once::Once;
use crate::cmd::mute::Mute;
use crate::cmd::resolver::Report as FleetReport;
use crate::ui::clean;
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::wire::{
    CertificateList, EngineReport, Health, Leaving, Overview, RefusedList, RouterReport, Standing,
};

/// What was asked and what was answered.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// `ann@desk`.
    pub(crate) host: String,
    /// The control socket that was asked.
    pub(crate) socket: String,
    /// The daemon's word, or why there is none.
    pub(crate) health: Result<Health, Unanswered>,
    pub(crate) overview: Overview,
    pub(crate) refused: RefusedList,
    pub(crate) certificates: CertificateList,
    pub(crate) fleet: Fleet,
}

/// Why the daemon gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// In words.
    pub(crate) why: String,
    /// The daemon, when it is there all the same.
    pub(crate) mute: Option<Mute>,
}

/// The fleet's side.
#[derive(Debug, Clone)]
pub(crate) enum Fleet {
    /// There is none here.
    None,
    /// What `resolver status` says.
    Told(Box<FleetReport>),
    /// It could not be looked at.
    Unknown(String),
}

/// The answer; field order is the order of the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Who looked, `account@machine`.
    pub(crate) host: String,
    /// RFC 3339.
    pub(crate) generated_at: String,
    /// `ready`, `degraded` (something has to be put right) or `down` (no daemon answers).
    pub(crate) verdict: &'static str,
    /// What has to be put right, then what is worth knowing; the worst first.
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) daemon: Daemon,
    /// Those that do not work first.
    pub(crate) services: Vec<Standing>,
    /// Connections that have had no answer yet, the oldest first.
    pub(crate) waits: Vec<Waiting>,
    /// Absent where containers are not watched.
    pub(crate) docker: Option<EngineReport>,
    pub(crate) router: RouterReport,
    /// What `stado resolver status --json` says; absent without a fleet.
    pub(crate) fleet: Option<Box<FleetReport>>,
}

/// The daemon that was asked.
#[derive(Debug, Serialize)]
pub(crate) struct Daemon {
    pub(crate) answers: bool,
    pub(crate) socket: String,
    pub(crate) version: Option<String>,
    pub(crate) pid: Option<u32>,
    /// Whether a signal has stopped it.
    pub(crate) stopped: bool,
    /// Daemons that were taken over and still have streams.
    pub(crate) leaving: Vec<Leaving>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Trouble {
    /// `fail` has to be put right, `warn` is worth knowing.
    pub(crate) severity: &'static str,
    /// What it is about: `daemon`, `fleet`, `router`, `containers`, `certificates`, or a service.
    pub(crate) about: String,
    pub(crate) what: String,
    /// RFC 3339, when known.
    pub(crate) since: Option<String>,
    /// What to do, when `what` does not say it.
    pub(crate) fix: Option<String>,
}

/// One wait in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    pub(crate) service: String,
    pub(crate) consumer: String,
    pub(crate) waited_seconds: u64,
    /// `open` or `answer`.
    pub(crate) phase: String,
    /// Where the answer has to come from.
    pub(crate) endpoint: String,
    pub(crate) host: String,
    pub(crate) client: Option<String>,
}

impl Trouble {
    fn new(severity: &'static str, about: &str, what: &str) -> Self {
        Self { severity, about: clean::line(about), what: clean::line(what), since: None, fix: None }
    }

    fn fail(about: &str, what: &str) -> Self {
        Self::new("fail", about, what)
    }

    fn warn(about: &str, what: &str) -> Self {
        Self::new("warn", about, what)
    }

    fn since(self, since: &str) -> Self {
        Self { since: Some(since.to_owned()).filter(|since| !since.is_empty()), ..self }
    }

    fn fix(self, fix: &str) -> Self {
        Self { fix: Some(clean::line(fix)).filter(|fix| !fix.is_empty()), ..self }
    }
}

/// Concludes.
pub(crate) fn conclude(seen: Seen, now: Timestamp) -> Report {
    let mut troubles = troubles(&seen);
    troubles.sort_by_key(|trouble| trouble.severity != "fail");
    let told = match &seen.fleet {
        Fleet::Told(report) => Some(&**report),
        Fleet::None | Fleet::Unknown(_) => None,
    };
    Once::of_fleet(told).said(troubles.iter_mut().map(|trouble| &mut trouble.what));
    let verdict = match &seen.health {
        Err(_) => "down",
        Ok(_) if troubles.iter().any(|trouble| trouble.severity == "fail") => "degraded",
        Ok(_) => "ready",
    };
    let Overview { pid, router, mut services, .. } = seen.overview;
    services.sort_by(|a, b| (rank(a), &a.name, &a.consumer).cmp(&(rank(b), &b.name, &b.consumer)));
    let mute = seen.health.as_ref().err().and_then(|unanswered| unanswered.mute.clone());
    let health = seen.health.ok();
    let fleet = match seen.fleet {
        Fleet::Told(report) => Some(report),
        Fleet::None | Fleet::Unknown(_) => None,
    };
    let waits = fleet.as_deref().map(waits).unwrap_or_default();
    Report {
        host: seen.host,
        generated_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        verdict,
        troubles,
        daemon: Daemon {
            answers: health.is_some(),
            socket: seen.socket,
            version: health.as_ref().map(|health| health.version.clone()),
            pid: Some(pid).filter(|pid| *pid > 0).or(mute.as_ref().and_then(|mute| mute.pid)),
            stopped: mute.is_some_and(|mute| mute.stopped),
            leaving: health.map(|health| health.leaving).unwrap_or_default(),
        },
        services,
        waits,
        docker: seen.refused.docker,
        router,
        fleet: fleet.filter(|fleet| of_a_fleet(fleet)),
    }
}

/// What does not work comes first.
fn rank(row: &Standing) -> u8 {
    match row.state.as_str() {
        "unserved" => 0,
        "ready" if row.last_error.is_some() => 2,
        "ready" => 3,
        _ => 1,
    }
}

/// Whether there is a fleet that it speaks of.
fn of_a_fleet(report: &FleetReport) -> bool {
    report.target.is_some() || !report.authority.reachable
}

fn waits(report: &FleetReport) -> Vec<Waiting> {
    let mut waits: Vec<Waiting> = report
        .waiting_opens
        .iter()
        .map(|waiting| Waiting {
            service: waiting.wait.service.clone(),
            consumer: waiting.wait.consumer.clone(),
            waited_seconds: waiting.waited_seconds,
            phase: waiting.wait.phase.clone(),
            endpoint: waiting.wait.endpoint.clone(),
            host: waiting.wait.active_host.clone(),
            client: waiting.wait.client.clone(),
        })
        .collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.waited_seconds));
    waits
}

fn troubles(seen: &Seen) -> Vec<Trouble> {
    let mut all = Vec::new();
    match &seen.health {
        Ok(_) => {}
        Err(Unanswered { mute: Some(mute), .. }) => {
            all.push(Trouble::fail("daemon", &mute.sentence()).fix(&mute.remedy()));
        }
        Err(Unanswered { why, mute: None }) => {
            let fix = "Start it with `stado resolver serve`; `stado doctor --fix-hints` looks further.";
            all.push(Trouble::fail("daemon", why).fix(fix));
        }
    }
    all.extend(of_fleet(seen));
    all.extend(of_router(seen, &all));
    all.extend(of_containers(seen));
    all.extend(of_certificates(&seen.certificates));
    all
}

/// Every blocker is a sentence that says what to do. A daemon that is the mesh alone publishes nothing, and misses nothing.
fn of_fleet(seen: &Seen) -> Vec<Trouble> {
    match &seen.fleet {
        Fleet::None => Vec::new(),
        Fleet::Unknown(why) => {
            vec![Trouble::fail("fleet", why).fix("`stado doctor --fix-hints` says what each part of it needs.")]
        }
        Fleet::Told(report) if report.state == "unpublished" && !of_a_fleet(report) => Vec::new(),
        Fleet::Told(report) => {
            let blockers = report.blockers.iter().map(|blocker| Trouble::fail("fleet", blocker));
            // Containers that are not served have rows of their own.
            let refused = |warning: &&String| !seen.refused.refused.iter().any(|row| warning.contains(&row.reason));
            let warnings = report.warnings.iter().filter(refused);
            blockers.chain(warnings.map(|warning| Trouble::warn("fleet", warning))).collect()
        }
    }
}

/// A router that is off is missed by the services that have no address for it.
fn of_router(seen: &Seen, said: &[Trouble]) -> Vec<Trouble> {
    let RouterReport { http, https, reason, .. } = &seen.overview.router;
    let Some(reason) = reason else { return Vec::new() };
    let off = http.is_none() && https.is_none();
    let homeless: Vec<&str> =
        seen.overview.services.iter().filter(|row| waits_for_router(row)).map(|r| &*r.name).collect();
    if said.iter().any(|trouble| trouble.what.contains(reason.as_str())) {
        return Vec::new();
    }
    match homeless.first() {
        Some(first) if off => {
            let who = match homeless.len() - 1 {
                0 => format!("{first} has"),
                more => format!("{first} and {more} more have"),
            };
            vec![Trouble::warn("router", &format!("{who} no address: {reason}"))]
        }
        None if off => Vec::new(),
        _ => vec![Trouble::warn("router", reason)],
    }
}

fn waits_for_router(row: &Standing) -> bool {
    row.from == "mesh" && row.kind == "http" && row.address.is_empty()
}

/// An engine that was never there is none; one that went away is missed.
fn of_containers(seen: &Seen) -> Vec<Trouble> {
    let engine = seen.refused.docker.as_ref().filter(|engine| engine.status != "connected" && engine.reached);
    let gone = engine.map(|engine| {
        let why = engine.error.as_deref().unwrap_or("it does not answer");
        Trouble::fail("containers", &format!("not watched any more: {why}"))
            .since(&engine.since)
            .fix("Start the container engine; services of its containers come back by themselves.")
    });
    let refused = seen.refused.refused.iter().map(|row| {
        Trouble::warn(&format!("container {}", row.container), &row.sentence()).since(&row.since).fix(&row.remedy)
    });
    gone.into_iter().chain(refused).collect()
}

fn of_certificates(list: &CertificateList) -> Vec<Trouble> {
    let refused =
        list.refused.as_ref().map(|why| Trouble::fail("certificates", &format!("HTTPS is not served: {why}")));
    let bad = list.certificates.iter().filter_map(|certificate| {
        let problem = certificate.problem.as_ref()?;
        let since = certificate.since.as_deref().unwrap_or_default();
        Some(Trouble::warn("certificates", &format!("{}: {problem}", certificate.source)).since(since))
    });
    refused.into_iter().chain(bad).collect()
}

#[cfg(test)]
#[path = "conclude_tests.rs"]
mod tests;
