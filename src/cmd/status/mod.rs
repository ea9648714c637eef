//! `stado status`: everything of this host on one screen, worst first. [`look`] asks, [`conclude`] makes the report of what was
//! seen, [`text`] writes it for people; the last two are pure.
mod conclude;
mod look;
mod once;
mod text;

#[cfg(test)]
pub(crate) use conclude::Unanswered;
pub(crate) use conclude::{Fleet, Report, Seen, Trouble, conclude};
pub(crate) use look::{daemon, told};
pub(crate) use text::headline;

use crate::args::OverviewArgs;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;

/// Looks and prints. Ends with 0 when nothing has to be put right, else the answer is no.
pub(crate) async fn status(args: OverviewArgs, env: &Env) -> Verb {
    let report = report(&args, env).await?;
    if args.json {
        ui::json(&serde_json::to_value(&report).map_err(|e| Failure::here(e.to_string()))?)?;
    } else {
        ui::print(&text::text(&report, args.all))?;
    }
    Ok(if report.verdict == "ready" { Outcome::Done } else { Outcome::No })
}

/// What `stado status` tells.
pub(crate) async fn report(args: &OverviewArgs, env: &Env) -> Result<Report, Failure> {
    Ok(conclude(look::look(&args.daemon, env).await?, Timestamp::now()))
}
