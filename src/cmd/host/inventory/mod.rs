//! `host inventory`: what a host really has, on axes that know nothing of each other (fleet contract §5, §6.13).
mod compose;
mod facts;
mod markers;
mod report;
mod sanitize;
mod script;
mod sockets;
mod text;
mod versions;

use super::patience;
use crate::args::HostInventoryArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::remote::{Remote, entry};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, clean};
use compose::Declaration;
use facts::Facts;
use report::Report;
use script::{COMMAND, Wanted};
use serde_json::Value;
use stado_fleet::authority::Answer;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::ledger::ResolverState;
use stado_fleet::link::{ExecLimits, ExecOutput};
use stado_fleet::name::TargetName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Far above any host's answer.
const LARGEST: usize = 16 << 20;
/// For a socket table alone.
const SOCKETS: Duration = Duration::from_secs(30);

/// `host inventory`. Drift is no failure: it is what was asked for.
pub(crate) async fn inventory(args: HostInventoryArgs, env: &Env) -> Verb {
    let limit = patience(&args.timeout)?;
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let remote = Remote::of(&fleet, &answer.snapshot.valid.registry, &args.target)?;
    remote.reachable()?;
    let declared = declaration(&answer, &remote.name);
    let (report, failure) = match take(&remote, &answer, &declared, limit).await {
        Ok(report) => (report, None),
        Err((exit_code, failure)) => (failed(&declared, &remote, exit_code, &failure), Some(failure)),
    };
    if args.json {
        ui::json(&serde_json::to_value(&report).map_err(|e| Failure::here(e.to_string()))?)?;
    } else if failure.is_none() {
        ui::print(&report.to_string())?;
    }
    failure.map_or(Ok(Outcome::Done), Err)
}

/// Asks, and compares. An error carries the exit code of what ran there.
async fn take(
    remote: &Remote<'_>,
    answer: &Answer,
    declared: &Declaration<'_>,
    limit: Duration,
) -> Result<Report, (Option<u32>, Failure)> {
    let script = script::inventory(&wanted(answer, declared));
    let limits = ExecLimits { stdout: LARGEST, deadline: limit };
    let output = remote.run(COMMAND, script.as_bytes(), limits).await.map_err(|failure| (None, failure))?;
    let facts = heard(&remote.name, &output).map_err(|failure| (output.status, failure))?;
    let mut report = compose::report(&facts, declared);
    report.ssh = remote.destination(&output.path);
    report.exit_code = output.status;
    report.path = Some(output.path);
    Ok(report)
}

/// The facts of an answer, or what the host said instead.
pub(crate) fn heard(target: &TargetName, output: &ExecOutput) -> Result<Facts, Failure> {
    let refused = |why: &str| {
        let said = clean::lines(output.stderr.trim_ascii());
        let said = if said.is_empty() { said } else { format!(": {said}") };
        Failure::new(Class::Unknown, Blame::Remote, format!("the inventory of {target} failed: {why}{said}"))
    };
    match output.status {
        _ if output.cut => Err(refused("its answer is too large")),
        Some(0) => Facts::parse(&output.stdout).map_err(|why| refused(&why)),
        Some(code) => Err(refused(&format!("`{COMMAND}` ended there with {code}"))),
        None => Err(refused(&format!("`{COMMAND}` ended there without an exit code"))),
    }
}

/// What the registry says of a host.
fn declaration<'a>(answer: &'a Answer, target: &'a TargetName) -> Declaration<'a> {
    let entry = entry(&answer.snapshot.valid.document, target);
    let versions = entry.and_then(|entry| entry.get("managed_versions")).and_then(Value::as_object);
    Declaration {
        registry: &answer.snapshot.valid.registry,
        target,
        release_platform: entry.and_then(|e| e.get("release_platform")?.as_str()).map(str::to_owned),
        versions: versions
            .into_iter()
            .flatten()
            .filter_map(|(name, version)| Some((name.clone(), version.as_str()?.to_owned())))
            .collect::<BTreeMap<_, _>>(),
    }
}

/// The binaries that are asked for: the declared ones, and `stado` itself, at the place that the registry knows.
fn wanted(answer: &Answer, declared: &Declaration<'_>) -> Vec<Wanted> {
    let registry = &answer.snapshot.valid.registry;
    let own = registry.targets.get(declared.target).and_then(|target| target.stado_command.clone());
    let authority = registry.directory.as_ref().filter(|directory| directory.authority_target == *declared.target);
    let stado = own.or_else(|| authority.map(|directory| directory.authority_command.clone()));
    let stado = stado.filter(|path| path.starts_with('/')).unwrap_or_default();
    let others = declared.versions.keys().filter(|name| *name != "stado");
    let others = others.map(|name| Wanted { name: name.clone(), path: String::new() });
    std::iter::once(Wanted { name: "stado".to_owned(), path: stado }).chain(others).collect()
}

fn failed(declared: &Declaration<'_>, remote: &Remote<'_>, exit_code: Option<u32>, failure: &Failure) -> Report {
    Report {
        target: declared.target.to_string(),
        ssh: remote.paths.first().map(|path| path.destination.to_string()),
        sanitizer_state: "clean",
        declared_release_platform: declared.release_platform.clone(),
        release_platform_verdict: "unknown",
        listeners_state: "failed",
        exit_code,
        status: "failed",
        error: Some(clean::line(&failure.message)),
        ..Report::default()
    }
}

/// How many binaries the registry declares for a host, and a sentence for each that is not at its declared version.
pub(crate) async fn version_drift(
    remote: &Remote<'_>,
    answer: &Answer,
    limit: Duration,
) -> Result<(usize, Vec<String>), Failure> {
    let declared = declaration(answer, &remote.name);
    let report = take(remote, answer, &declared, limit).await.map_err(|(_, failure)| failure)?;
    let all = report.managed_binaries.iter().filter(|binary| binary.declared_version.is_some());
    let drifted = all.filter(|binary| binary.verdict != versions::Verdict::Matched);
    let sentence = |binary: &report::Binary| {
        let wanted = binary.declared_version.as_deref().unwrap_or_default();
        let found =
            binary.version.as_deref().map_or("none that says its version".to_owned(), |version| version.to_owned());
        format!("{} {wanted} is declared, and here is {found}", binary.name)
    };
    Ok((declared.versions.len(), drifted.map(sentence).collect()))
}

/// Ports that something listens on, on a host.
pub(crate) async fn ports_in_use(remote: &Remote<'_>) -> Result<BTreeSet<u16>, Failure> {
    let limits = ExecLimits { stdout: LARGEST, deadline: SOCKETS };
    let output = remote.run(COMMAND, script::sockets().as_bytes(), limits).await?;
    let table = sockets::table(&heard(&remote.name, &output)?);
    let table = table.ok_or_else(|| Failure::here(format!("{} could not read its socket table", remote.name)))?;
    Ok(table.iter().map(|listener| listener.port).collect())
}

/// Asks only what the resolver of a host has published: the host's clock in seconds, and the state.
pub(crate) fn beacon_question() -> (&'static str, String) {
    (COMMAND, script::beacon())
}

/// The answer to [`beacon_question`].
pub(crate) struct Beacon {
    /// Seconds since 1970 by the host's own clock.
    pub(crate) clock: Option<i64>,
    /// Where it publishes.
    pub(crate) file: String,
    /// What it has published; why what is there says nothing.
    pub(crate) state: Result<Option<ResolverState>, String>,
    /// Whether the lock of its publisher is held; `None` where the host has nothing to probe it with.
    pub(crate) runs: Option<bool>,
}

/// Reads the answer to [`beacon_question`].
pub(crate) fn beacon(facts: &Facts) -> Beacon {
    let clock = facts.one("clock").and_then(|fact| fact.text(0).parse().ok());
    let file = facts.one("resolver_state").map(|fact| clean::line(&fact.text(0))).unwrap_or_default();
    let runs = facts.one("resolver_runs").map(|fact| fact.text(0) == "yes");
    Beacon { clock, file, state: compose::state(facts), runs }
}
