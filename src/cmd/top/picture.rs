//! What there is to show: what `stado status` concludes, with rates, as rows that can be filtered and sorted. Pure.
use super::meter::{Meter, Rates};
use crate::cmd::resolver;
use crate::cmd::status::{Report, Trouble, headline};
use jiff::Timestamp;
use stado_fleet::ledger::LinkState;
use stado_fleet::wire::{LastError, Standing};
use std::collections::HashMap;

/// Everything at one moment.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// The first line of `stado status`.
    pub(super) headline: String,
    /// `ready`, `degraded` or `down`; empty before anything is known.
    pub(super) verdict: &'static str,
    /// Why no daemon answers, with what to do; the routes are then those that were known last.
    pub(super) down: Option<String>,
    pub(super) routes: Vec<Row>,
    /// The oldest first.
    pub(super) waits: Vec<Wait>,
    pub(super) sessions: Vec<Session>,
    /// The worst first.
    pub(super) troubles: Vec<Trouble>,
}

/// One service, or one adapter.
#[derive(Debug)]
pub(super) struct Row {
    /// `checkout.db`, or `orders for shop`.
    pub(super) title: String,
    pub(super) state: State,
    /// Why it does not work, or did not.
    pub(super) why: String,
    pub(super) standing: Standing,
    pub(super) rates: Option<Rates>,
    /// What the resolver knows of an adapter's way.
    pub(super) way: Option<resolver::Route>,
    /// Since when the oldest of its connections waits.
    pub(super) waits_since: Option<Timestamp>,
}

/// How a route stands, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Unserved,
    Unavailable,
    Failing,
    Waiting,
    Ready,
    /// No daemon answers for it.
    Unknown,
}

/// A connection without an answer.
#[derive(Debug)]
pub(super) struct Wait {
    /// As [`Row::title`].
    pub(super) title: String,
    /// Of the row that it belongs to.
    pub(super) route: String,
    pub(super) since: Option<Timestamp>,
    pub(super) of: stado_fleet::ledger::Wait,
}

/// How streams reach another host.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) link: LinkState,
    /// Routes of this host that lead there.
    pub(super) routes: Vec<String>,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Unserved => "unserved",
            Self::Unavailable => "unavailable",
            Self::Failing => "failing",
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Unknown => "unknown",
        }
    }
}

impl Row {
    /// Where it stands, or why it stands nowhere.
    pub(super) fn behind(&self) -> &str {
        if self.state == State::Ready || self.why.is_empty() { &self.standing.place } else { &self.why }
    }
}

/// Service and consumer.
type Key = (String, String);

/// The picture that a report makes.
pub(super) fn picture(report: Report, meter: &Meter) -> Picture {
    let headline = headline(&report);
    let alive = report.daemon.answers;
    let fleet = report.fleet.map(|fleet| *fleet);
    let (routes, waiting, links) = match fleet {
        Some(fleet) => (fleet.routes, fleet.waiting_opens, fleet.links),
        None => Default::default(),
    };
    let waits: Vec<Wait> = waits(waiting);
    let mut ways: HashMap<Key, resolver::Route> =
        routes.into_iter().map(|route| ((route.service.clone(), route.consumer.clone()), route)).collect();
    let mut oldest: HashMap<&str, Option<Timestamp>> = HashMap::new();
    for wait in &waits {
        oldest.entry(wait.route.as_str()).or_insert(wait.since);
    }
    let row = |standing: Standing| {
        let way = ways.remove(&(standing.name.clone(), standing.consumer.clone())).filter(|_| standing.from == "fleet");
        let (state, why) = state(&standing, way.as_ref(), meter.worked_ms(&standing.id));
        Row {
            title: title(&standing.name, &standing.consumer),
            state: if alive { state } else { State::Unknown },
            why,
            rates: meter.rates(&standing.id),
            waits_since: oldest.get(standing.id.as_str()).copied().flatten().filter(|_| alive),
            standing,
            way,
        }
    };
    let rows: Vec<Row> = report.services.into_iter().map(row).collect();
    let down = report.troubles.iter().find(|trouble| !alive && trouble.about == "daemon").map(sentence);
    Picture {
        headline,
        verdict: report.verdict,
        down,
        sessions: links.into_iter().map(|link| session(link, &rows)).collect(),
        routes: rows,
        waits,
        troubles: report.troubles,
    }
}

/// What is wrong, and what to do.
pub(super) fn sentence(trouble: &Trouble) -> String {
    match &trouble.fix {
        Some(fix) => format!("{}. {fix}", trouble.what.trim_end_matches('.')),
        None => trouble.what.clone(),
    }
}

/// `checkout.db`, or `orders for shop`.
pub(super) fn title(service: &str, consumer: &str) -> String {
    if consumer.is_empty() { service.to_owned() } else { format!("{service} for {consumer}") }
}

fn waits(all: Vec<resolver::Waiting>) -> Vec<Wait> {
    let mut waits: Vec<Wait> = all
        .into_iter()
        .map(|waiting| Wait {
            title: title(&waiting.wait.service, &waiting.wait.consumer),
            // As the daemon names its rows.
            route: format!("fleet/{}/{}", waiting.wait.service, waiting.wait.consumer),
            since: waiting.wait.since.parse().ok(),
            of: waiting.wait,
        })
        .collect();
    waits.sort_by(|a, b| a.since.is_none().cmp(&b.since.is_none()).then(a.since.cmp(&b.since)));
    waits
}

/// How a route stands, and why. `worked_ms`: when it was last seen to work.
fn state(row: &Standing, way: Option<&resolver::Route>, worked_ms: Option<i64>) -> (State, String) {
    let trouble = way.and_then(|way| way.trouble.as_ref());
    match row.state.as_str() {
        "unserved" => (State::Unserved, row.reason.clone()),
        "ready" => match (trouble, &row.last_error) {
            (Some(trouble), _) if way.is_some_and(|way| way.waiting > 0) => (State::Waiting, trouble.cause.clone()),
            (Some(trouble), _) => (State::Failing, format!("the {} failed: {}", trouble.hop, trouble.cause)),
            // What the resolver knows of the way says that it works again.
            (None, Some(error)) if way.is_none() && failing(error, worked_ms) => {
                (State::Failing, error_sentence(error))
            }
            _ => (State::Ready, row.reason.clone()),
        },
        _ => (State::Unavailable, row.reason.clone()),
    }
}

/// Whether nothing has worked since.
fn failing(error: &LastError, worked_ms: Option<i64>) -> bool {
    let at = error.at.parse::<Timestamp>().ok();
    worked_ms.is_none_or(|worked| at.is_some_and(|at| at.as_millisecond() >= worked))
}

/// `the session failed: no path`.
pub(super) fn error_sentence(error: &LastError) -> String {
    match &error.hop {
        Some(hop) => format!("the {hop} failed: {}", error.cause),
        None => error.cause.clone(),
    }
}

fn session(link: LinkState, rows: &[Row]) -> Session {
    let leads_there = |row: &&Row| row.standing.host == link.host;
    let routes = rows.iter().filter(leads_there).map(|row| row.title.clone()).collect();
    Session { link, routes }
}
