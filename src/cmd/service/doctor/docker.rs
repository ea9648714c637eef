//! Whether containers are served: the daemon's word, the engine's, a real publication, and each that is not served.
use super::Check;
use crate::config::{Env, docker_lookup};
use jiff::SignedDuration;
use stado_fleet::wire::{EngineReport, RefusedList};
use stado_resolver::docker::Lookup;
use stado_resolver::docker::probe::{self, Finding, Survey};
use std::os::unix::fs::PermissionsExt;

/// Clocks that differ by more make `docker events --since` and container ages misleading.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// `health` is the daemon's word in its health answer.
pub(super) async fn checks(health: &str, list: &RefusedList, env: &Env) -> Vec<Check> {
    let mut checks = match health {
        "connected" => vec![Check::ok("docker", "connected")],
        "disabled" => return vec![Check::skip("docker", "disabled by configuration"), clock(None)],
        other => vec![Check::fail("docker", degraded(other, list.docker.as_ref()))],
    };
    let lookup = match lookup(list, env) {
        Ok(lookup) => lookup,
        Err(error) => return vec![Check::fail("docker-engine", error)],
    };
    // The daemon's SSH link is not ours to use.
    let survey = probe::survey(&lookup, None).await;
    match &survey {
        Ok(survey) => {
            let about = &survey.about;
            checks.push(Check::ok(
                "docker-engine",
                format!("{} (API {}) at {}", about.version, about.api, about.endpoint),
            ));
            checks.extend(socket(&about.endpoint));
            checks.push(projects(survey));
            checks.extend(unclear(survey));
        }
        Err(error) => checks.push(Check::fail("docker-engine", error.to_string())),
    }
    checks.push(match probe::publication(&lookup, None).await {
        Finding::Ok(detail) => Check::ok("docker-publication-probe", detail),
        Finding::Skip(detail) => Check::skip("docker-publication-probe", detail),
        Finding::Fail(detail) => Check::fail("docker-publication-probe", detail),
    });
    checks.extend(not_served(list));
    checks.push(clock(survey.ok().and_then(|survey| survey.clock_ahead)));
    checks
}

fn degraded(word: &str, engine: Option<&EngineReport>) -> String {
    match engine.and_then(|engine| Some((engine, engine.error.as_ref()?))) {
        Some((engine, error)) => format!("status: {word} since {}: {error}", engine.since),
        None => format!("status: {word}"),
    }
}

/// The engine that the daemon watches, else the one of this environment.
fn lookup(list: &RefusedList, env: &Env) -> Result<Lookup, String> {
    match list.docker.as_ref().map(|engine| engine.endpoint.clone()).filter(|endpoint| endpoint.contains("://")) {
        Some(endpoint) => Ok(Lookup { host: Some(endpoint), ..Lookup::default() }),
        None => docker_lookup(env).map_err(|error| error.to_string()),
    }
}

fn socket(endpoint: &str) -> Option<Check> {
    let path = endpoint.strip_prefix("unix://")?;
    Some(match std::fs::metadata(path) {
        Ok(found) => {
            let mode = found.permissions().mode() & 0o777;
            let open = if mode & 0o002 == 0 { "" } else { "; everybody on this machine may use it, and so be root" };
            Check::ok("docker-socket", format!("{path} mode {mode:04o}, usable by this user{open}"))
        }
        Err(error) => Check::fail("docker-socket", format!("{path}: {error}")),
    })
}

fn projects(survey: &Survey) -> Check {
    let labelled: usize = survey.projects.values().sum();
    if labelled == 0 {
        return Check::skip("docker-containers", "no running container has the label io.devmesh.enable=true");
    }
    let told: Vec<String> = survey
        .projects
        .iter()
        .map(|(project, count)| match project.as_str() {
            "" => format!("{count} without Compose (owned by container name)"),
            project => format!("{count} of Compose project {project}"),
        })
        .collect();
    Check::ok("docker-containers", format!("{labelled} labelled: {}", told.join(", ")))
}

/// Containers that probably meant to opt in.
fn unclear(survey: &Survey) -> impl Iterator<Item = Check> {
    survey.unclear.iter().map(|(container, value)| {
        let detail = format!("io.devmesh.enable={value:?} is not true: write \"true\" and recreate the container");
        Check::fail(format!("container {container}"), detail)
    })
}

/// A row for each; one that is only superseded fails nothing.
fn not_served(list: &RefusedList) -> Vec<Check> {
    let told = list.refused.iter().map(|row| {
        let name = format!("container {}", row.container);
        let detail = format!("{}; {}", row.reason, row.remedy);
        if row.reason.contains(" is superseded by ") { Check::skip(name, detail) } else { Check::fail(name, detail) }
    });
    told.collect()
}

fn clock(ahead: Option<SignedDuration>) -> Check {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    match ahead {
        None => Check::ok("clock", now.to_string()),
        Some(ahead) if ahead.abs() > SKEW => {
            Check::fail("clock", format!("{now}; the engine's clock is {}s off: set both by NTP", ahead.as_secs()))
        }
        Some(_) => Check::ok("clock", format!("{now}, the engine agrees")),
    }
}
