//! `registry doctor`: what the document says, and the document itself, its store and this host contradict.
//!
//! Each kind of finding is one of fleet contract §6.8. Heartbeats and beacons are not read here: other hosts publish them.
mod host;
mod jobs;
mod sockets;
mod units;
mod unread;

use crate::args::JsonArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde::Serialize;
use serde_json::{Value, json};
use stado_fleet::document::{Document, Registry};
use stado_fleet::name::TargetName;

/// One thing that the document says and something else contradicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Divergence {
    finding: &'static str,
    subject: String,
    detail: String,
    /// What to do next: an addition of ours to the contract's three keys.
    remedy: String,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} {}: {}\n    {}", self.finding, self.subject, self.detail, self.remedy)
    }
}

/// `registry doctor`: what can be told from the document and from this host. Whatever other hosts report about themselves
/// is theirs to publish; none of it is read here, and the counts say so.
pub(crate) async fn doctor(args: JsonArgs, env: &Env) -> Verb {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let (document, registry) = (&answer.snapshot.valid.document, &answer.snapshot.valid.registry);
    let location = answer.source.location();
    let me = fleet.me(registry)?;
    let mut findings = of_document(document, registry);
    match &me {
        Some(me) => {
            findings.extend(units::missing(document, me));
            findings.extend(host::not_active(document, me).await);
            findings.extend(host::unmanaged_agents(document, me, &env.home()?));
        }
        None => findings.push(host::unmanaged(&fleet.host.hostname, &location)),
    }
    report(&args, &location, registry, &findings)?;
    if findings.is_empty() {
        return Ok(Outcome::Done);
    }
    Err(Failure::refused(format!("{} divergence(s) between {location} and live host state", findings.len())))
}

/// What the document contradicts by itself.
fn of_document(document: &Document, registry: &Registry) -> Vec<Divergence> {
    let mut findings = sockets::self_references(document, registry);
    findings.extend(units::misdeclared(document));
    findings.extend(unread::declarations(document));
    findings.extend(jobs::unsatisfied_grants(document));
    findings.extend(jobs::unplaced(document));
    findings
}

/// Active coordinators that no host runs: what is wrong with each, and what to do.
pub(crate) fn unplaced_coordinators(document: &Document) -> Vec<(String, String)> {
    jobs::unplaced(document).into_iter().map(|found| (found.detail, found.remedy)).collect()
}

fn report(args: &JsonArgs, location: &str, registry: &Registry, findings: &[Divergence]) -> Result<(), Failure> {
    let adapters: usize = registry.targets.values().filter_map(|t| Some(t.resolver.as_ref()?.adapters.len())).sum();
    let services = registry.directory.as_ref().map_or(0, |d| d.services.len());
    let targets = registry.targets.len();
    if args.json {
        return ui::json(&json!({
            "registry": location, "ok": findings.is_empty(),
            "checked": {
                "targets": targets, "services": services, "adapters": adapters, "beacons": 0, "capacity_consumers": 0,
            },
            "findings": findings,
        }));
    }
    if findings.is_empty() {
        return ui::line(format_args!(
            "registry {location} agrees with live host state ({targets} targets, {services} services, {adapters} adapters)"
        ));
    }
    ui::print(&findings.iter().map(ToString::to_string).collect::<String>())
}

/// The entries of a list of the document that are objects with a name: the name, and the entry.
fn named<'d>(document: &'d Document, section: &str) -> impl Iterator<Item = (&'d str, &'d Value)> {
    let list = document.section(section).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|entry| Some((entry.get("name")?.as_str()?, entry)))
}

/// The units that a target declares.
fn declared_units<'d>(document: &'d Document, target: &TargetName) -> impl Iterator<Item = &'d Value> {
    let target = target.clone();
    let mine = named(document, "targets").filter(move |(name, _)| *name == target.as_str());
    mine.flat_map(|(_, entry)| entry.get("services").and_then(Value::as_array).into_iter().flatten())
}

/// A text of an entry; empty when it is not there.
fn text<'v>(entry: &'v Value, key: &str) -> &'v str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
