//! `registry holders`: which generation each host holds, and which one it refuses and why.
//!
//! A host tells its authority over the watch that it keeps there; one that keeps none is asked over its declared paths for what
//! it has published.
mod judge;

use super::beacons::{Asked, ask_others, expected};
use crate::args::HoldersArgs;
use crate::cmd::age::span;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::patience;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use judge::{FRESH, Row, Stored, Word, judge};
use serde_json::json;
use stado_fleet::authority::{self, Answer, Holders, HoldersReport, Holding, Origin};
use stado_fleet::document::Target;
use stado_fleet::ledger::{Publisher, ResolverState, never_sentence};
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;

/// What is known of each host, and why it is not its word of now.
type Known = BTreeMap<TargetName, (Option<Word>, Option<String>)>;

/// `registry holders`.
pub(crate) async fn holders(args: HoldersArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let own = Holders::new(&fleet.host.stado_home);
    if args.here {
        let report = own.report(Timestamp::now());
        ui::line(serde_json::to_string(&report).map_err(|e| Failure::here(e.to_string()))?)?;
        return Ok(Outcome::Done);
    }
    let limit = patience(&args.timeout)?;
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let me = fleet.me(registry)?;
    let mut known = told(&heard(&fleet, &answer, &own).await);
    let others = registry.targets.values().filter(|target| Some(&target.name) != me.as_ref() && expected(target));
    let silent: Vec<&Target> = others.filter(|target| !has_fresh_word(&known, &target.name)).collect();
    let mut asked = ask_others(&fleet.link, silent.iter().copied(), limit).await;
    for target in silent {
        let before = known.remove(&target.name).and_then(|(word, _)| word);
        known.insert(target.name.clone(), after(asked.remove(&target.name), before, target));
    }
    if let Some(me) = me {
        known.insert(me.clone(), here(&fleet, &me)?);
    }
    let stored = stored(&answer);
    let now = Timestamp::now();
    let row = |target: &Target| {
        let (word, why) = known.remove(&target.name).unwrap_or_default();
        judge(target, word, why, &stored, now)
    };
    let rows: Vec<Row> = registry.targets.values().map(row).collect();
    let location = answer.source.location();
    if args.json {
        ui::json(&json!({"registry": location, "authority": stored, "hosts": rows}))?;
    } else {
        let head = format!(
            "registry {location} generation={} version={}{}\n",
            number(stored.generation),
            stored.store_version,
            epoch(stored.epoch)
        );
        ui::print(&(head + &rows.iter().map(ToString::to_string).collect::<String>()))?;
    }
    Ok(Outcome::Done)
}

fn stored(answer: &Answer) -> Stored {
    let registry = &answer.snapshot.valid.registry;
    Stored {
        target: registry.directory.as_ref().map(|directory| directory.authority_target.to_string()),
        generation: registry.directory.as_ref().map(|directory| directory.generation.0),
        store_version: answer.snapshot.store_version.to_string(),
        epoch: Some(registry.succession.epoch).filter(|epoch| *epoch > 0),
    }
}

/// What hosts have told the authority. One that keeps no such list, or does not answer, leaves every host to be asked.
async fn heard(fleet: &Fleet, answer: &Answer, own: &Holders) -> HoldersReport {
    if answer.origin == Origin::LastGood {
        return HoldersReport::default();
    }
    authority::holders(&answer.source, own, &fleet.link).await.unwrap_or_else(|error| {
        ui::note(format_args!("stado: {error}; each host is asked instead"));
        HoldersReport::default()
    })
}

fn has_fresh_word(known: &Known, name: &TargetName) -> bool {
    matches!(known.get(name), Some((Some(word), _)) if word.age <= FRESH && !word.gone)
}

fn told(report: &HoldersReport) -> Known {
    let now: Option<Timestamp> = report.now.parse().ok();
    let word = |heard: &authority::Heard| {
        let name: TargetName = heard.holding.target.parse().ok()?;
        let age = now?.duration_since(heard.at.parse().ok()?).as_secs();
        let gone = heard.gone_at.is_some();
        let word = Word { holding: heard.holding.clone(), how: "told", age: u64::try_from(age).unwrap_or(0), gone };
        Some((name, (Some(word), None)))
    };
    report.heard.iter().filter_map(word).collect()
}

/// What this host's own resolver has published.
fn here(fleet: &Fleet, me: &TargetName) -> Result<(Option<Word>, Option<String>), Failure> {
    let publisher = fleet.publisher()?;
    let word = |state, age| Word { holding: holding(state, me), how: "here", age, gone: false };
    Ok(match &publisher {
        Publisher::Alive(state) => (Some(word(state, 0)), None),
        Publisher::Dead { state, .. } => (Some(word(state, age(state, Timestamp::now()))), publisher.dead_sentence()),
        Publisher::Never { .. } => (None, Some(never_sentence(&fleet.host.published.state))),
        Publisher::Unreadable { .. } => (None, publisher.unreadable_sentence()),
    })
}

fn holding(state: &ResolverState, name: &TargetName) -> Holding {
    let unnamed = || Holding {
        target: name.to_string(),
        state: state.state.clone(),
        refused: state.refused.clone(),
        ..Holding::default()
    };
    Holding::of(state).unwrap_or_else(unnamed)
}

/// What is known of a host after it was asked, and what it had told before.
fn after(asked: Option<Asked>, before: Option<Word>, target: &Target) -> (Option<Word>, Option<String>) {
    match asked {
        Some(Asked::Published(beacon)) => match beacon.state {
            Ok(Some(state)) => published(&state, (beacon.clock, beacon.runs), target),
            Ok(None) => (before, Some(format!("no resolver has published state at {}", beacon.file))),
            Err(why) => (before, Some(format!("{} says nothing: {why}", beacon.file))),
        },
        Some(Asked::Unreachable(why) | Asked::Unread(why)) => (before, Some(why)),
        None => {
            let why = "it tells the authority nothing now, and declares no SSH connection path to ask it over";
            (before, Some(why.to_owned()))
        }
    }
}

/// What a host's resolver has published; `clock`: that host's, in seconds; `runs`: whether it runs, where that is known.
fn published(
    state: &ResolverState,
    (clock, runs): (Option<i64>, Option<bool>),
    target: &Target,
) -> (Option<Word>, Option<String>) {
    let now = clock.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_else(Timestamp::now);
    let age = age(state, now);
    let word = Word { holding: holding(state, &target.name), how: "asked", age, gone: false };
    // What it published last is no word of now when it publishes no more.
    let window = target.resolver.as_ref().map_or(FRESH, |policy| policy.max_stale_seconds.max(FRESH));
    let why = match runs {
        Some(false) => Some("its resolver is not running: nobody holds the lock of what it published".to_owned()),
        _ => (age > window).then(|| format!("its resolver has published nothing for {}", span(age))),
    };
    (Some(word), why)
}

/// How long ago a state was written, in seconds.
fn age(state: &ResolverState, now: Timestamp) -> u64 {
    let written: Option<Timestamp> = state.updated_at.parse().ok();
    written.map_or(0, |at| u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0))
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn epoch(epoch: Option<u64>) -> String {
    epoch.map(|epoch| format!(" epoch={epoch}")).unwrap_or_default()
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, status, .. } = self;
        let state = self.state.as_deref().map_or("-".into(), ui::clean::line);
        write!(f, "{host}  {status}  generation={}{}  state={state}", number(self.generation), epoch(self.epoch))?;
        match (self.heard, self.age_seconds) {
            (Some(_), Some(age)) if self.silent_since.is_some() => {
                let since = self.silent_since.as_deref().unwrap_or_default();
                write!(f, "  nothing heard since {since} ({})", span(age))?;
                if let Some(last) = &self.last_state {
                    write!(f, ", when it was {}", ui::clean::line(last))?;
                }
            }
            (Some(how), Some(age)) if how != "here" => write!(f, "  {how} {} ago", span(age))?,
            (Some(how), _) => write!(f, "  {how}")?,
            (None, _) => {}
        }
        match &self.detail {
            Some(detail) => writeln!(f, "  {}", ui::clean::line(detail))?,
            None => writeln!(f)?,
        }
        match &self.refused {
            Some(refused) => {
                let text = format!("refuses {}: {}", refused.name(), refused.reason);
                writeln!(f, "    {}", ui::clean::line(&text))
            }
            None => Ok(()),
        }
    }
}
