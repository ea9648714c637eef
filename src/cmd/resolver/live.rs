//! `resolver status --watch`: the report again and again, until somebody ends it or nobody reads it.
use super::status::{AUTHORITY, outcome, report_on};
use super::text::text;
use super::verdict::Report;
use crate::args::StatusArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::until_stopped;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use stado_fleet::authority::Answer;
use std::cell::Cell;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The authority is asked no more often than that, however often the files are read.
const AGAIN: Duration = Duration::from_secs(5);
/// Home, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Ends with the last verdict.
pub(super) async fn watch(fleet: &Fleet, args: &StatusArgs, every: Duration) -> Verb {
    let last = Cell::new(Outcome::No);
    tokio::select! {
        stopped = until_stopped() => stopped?,
        ended = show(fleet, args, every, &last) => ended?,
    }
    Ok(last.get())
}

type Reading<'a> = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + 'a>>;

/// Shows reports until nobody reads them any more.
async fn show(fleet: &Fleet, args: &StatusArgs, every: Duration, last: &Cell<Outcome>) -> Result<(), Failure> {
    let read = || -> Reading<'_> { Box::pin(fleet.read_quietly(true, Some(AUTHORITY))) };
    let mut known = read().await;
    let (mut reading, mut read_at): (Option<Reading<'_>>, _) = (None, Instant::now());
    loop {
        let next = Instant::now() + every;
        let report = report_on(fleet, args, &known).await?;
        last.set(outcome(&report));
        if !ui::shown(&drawn(&report, args.json, every)?)? {
            return Ok(());
        }
        if reading.is_none() && read_at.elapsed() >= AGAIN {
            reading = Some(read());
        }
        // A silent authority is waited for beside the view.
        while Instant::now() < next {
            tokio::select! {
                () = sleep_until(next) => {}
                answer = finished(&mut reading) => (known, reading, read_at) = (answer, None, Instant::now()),
            }
        }
    }
}

/// Pending while nothing is read.
async fn finished(reading: &mut Option<Reading<'_>>) -> Result<Answer, Failure> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
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
