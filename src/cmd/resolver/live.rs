//! The report again and again: `resolver status --watch`, until somebody ends it or nobody reads it, and whoever shows it
//! beside something else.
use super::status::{AUTHORITY, Binds, outcome, report_on};
use super::text::text;
use super::verdict::Report;
use crate::args::StatusArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::until_stopped;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use stado_fleet::authority::Answer;
use stado_fleet::fault::{Blame, Class};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

/// The authority is asked no more often than that, however often the files are read.
const AGAIN: Duration = Duration::from_secs(5);
/// Home, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Ends with the last verdict.
pub(super) async fn watch(fleet: Fleet, args: &StatusArgs, every: Duration) -> Verb {
    let last = Cell::new(Outcome::No);
    tokio::select! {
        stopped = until_stopped() => stopped?,
        ended = show(fleet, args, every, &last) => ended?,
    }
    Ok(last.get())
}

/// Shows reports until nobody reads them any more.
async fn show(fleet: Fleet, args: &StatusArgs, every: Duration, last: &Cell<Outcome>) -> Result<(), Failure> {
    let mut watched = Watched::begin(fleet);
    watched.answered().await;
    loop {
        let next = Instant::now() + every;
        let report = watched.report(args, Binds::Tried).await?;
        last.set(outcome(&report));
        if !ui::shown(&drawn(&report, args.json, every)?)? {
            return Ok(());
        }
        sleep_until(next).await;
    }
}

/// A fleet that is looked at again and again. The authority is asked beside it: a silent one holds no report up.
pub(crate) struct Watched {
    fleet: Arc<Fleet>,
    known: Result<Answer, Failure>,
    /// At most one.
    reading: JoinSet<Result<Answer, Failure>>,
    read_at: Instant,
}

impl Watched {
    /// Asks the authority, and waits for nothing.
    pub(crate) fn begin(fleet: Fleet) -> Self {
        let unanswered = Failure::new(Class::Timeout, Blame::Remote, "it has not answered yet");
        let (fleet, reading) = (Arc::new(fleet), JoinSet::new());
        let mut watched = Self { fleet, known: Err(unanswered), reading, read_at: Instant::now() };
        watched.ask();
        watched
    }

    /// Returns when the authority has answered, or was given up; at once when it is not being asked.
    pub(crate) async fn answered(&mut self) {
        if let Some(answer) = self.reading.join_next().await {
            self.take(answer);
        }
    }

    /// What is so now.
    pub(crate) async fn report(&mut self, args: &StatusArgs, binds: Binds) -> Result<Report, Failure> {
        while let Some(answer) = self.reading.try_join_next() {
            self.take(answer);
        }
        if self.reading.is_empty() && self.read_at.elapsed() >= AGAIN {
            self.ask();
        }
        report_on(&self.fleet, args, &self.known, binds).await
    }

    fn ask(&mut self) {
        let fleet = Arc::clone(&self.fleet);
        self.reading.spawn(async move { fleet.read_quietly(true, Some(AUTHORITY)).await });
    }

    fn take(&mut self, answer: Result<Result<Answer, Failure>, JoinError>) {
        self.known = answer.unwrap_or_else(|error| Err(Failure::here(error.to_string())));
        self.read_at = Instant::now();
    }
}

/// One report: a screen for a terminal, a paragraph or one line of JSON for whatever else reads.
fn drawn(report: &Report, json: bool, every: Duration) -> Result<String, Failure> {
    if json {
        return serde_json::to_string(report).map(|line| line + "\n").map_err(|e| Failure::here(e.to_string()));
    }
    let body = ui::clean::lines(text(report).as_bytes());
    let head = format!("{} every {}s", Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"), every.as_secs());
    Ok(match std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        true => format!("{CLEAR}{head}, Ctrl-C ends\n\n{body}\n"),
        false => format!("{head}\n{body}\n\n"),
    })
}
