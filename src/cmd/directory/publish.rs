use super::look::Look;
use crate::args::PublishArgs;
use crate::cmd::age;
use crate::cmd::observations::{Observations, fact};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::forwards::{self, Declared, Forwards, Fossil, Pruned, Skipped};
use std::path::PathBuf;
use std::time::SystemTime;

/// One marker that was written, or was right already.
#[derive(Debug, Clone, Serialize)]
struct Published {
    service: String,
    url: String,
    source: &'static str,
    marker: PathBuf,
}

/// `--json`; field order is the order on the wire.
#[derive(Debug, Clone, Serialize)]
struct Report {
    target: String,
    published: Vec<Published>,
    skipped: Vec<Skipped>,
    fossil: Vec<Fossil>,
    markers_present: usize,
    markers_declared: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pruned: Option<Vec<Pruned>>,
}

/// `service directory publish`: writes this host's markers, lists the fossils, and with `--prune` removes exactly those.
/// Never from a copy: a marker that nobody declares any more would come back.
pub(crate) async fn publish(args: PublishArgs, env: &Env) -> Verb {
    if args.prune && args.service.is_some() {
        return Err(Failure::usage(
            "--prune compares the whole directory against every marker present and cannot be scoped with --service; publish \
             one service, then run `publish --prune` to sweep",
        ));
    }
    let look = Look::read(env, false).await?;
    let target = look.target(args.target.as_deref())?;
    look.directory()?;
    let publisher = look.fleet.publisher_if_readable();
    let given = |service: &str, consumer: &str| look.fleet.adapter_bind(&publisher, service, consumer);
    let (declared, skipped) = forwards::declared(look.registry(), &target, &given);
    let (mine, skipped) = scoped(&args, &look, &declared, skipped)?;
    let dir = Forwards::new(&look.fleet.host.forwards_dir);
    let (_, failed) = dir.keep(&mine);
    let fossil = dir.fossils(&declared, SystemTime::now())?;
    let present = dir.present()?;
    let pruned = args.prune.then(|| dir.prune(&fossil));
    let written = |d: &Declared| !failed.iter().any(|(service, _)| *service == d.service);
    let report = Report {
        target: target.to_string(),
        published: mine.iter().filter(|d| written(d)).map(|d| published(&dir, d)).collect(),
        skipped,
        fossil,
        markers_present: present,
        markers_declared: declared.len(),
        pruned,
    };
    if args.json {
        ui::json(&serde_json::to_value(&report).map_err(|e| Failure::here(e.to_string()))?)?;
    } else {
        ui::print(&text(&report, &look, &dir))?;
    }
    conclude(&report, &failed)
}

fn published(dir: &Forwards, declared: &Declared) -> Published {
    let Declared { service, url, source } = declared.clone();
    Published { marker: dir.marker(&service), service, url, source }
}

/// Only the service that was asked for.
fn scoped(
    args: &PublishArgs,
    look: &Look,
    declared: &[Declared],
    skipped: Vec<Skipped>,
) -> Result<(Vec<Declared>, Vec<Skipped>), Failure> {
    let Some(only) = &args.service else { return Ok((declared.to_vec(), skipped)) };
    if !look.directory()?.services.keys().any(|name| name.as_str() == only) {
        return Err(Failure::not_found(format!("service_directory declares no service named {only}")));
    }
    let mine = declared.iter().filter(|d| d.service == *only).cloned().collect();
    Ok((mine, skipped.into_iter().filter(|s| s.service == *only).collect()))
}

fn text(report: &Report, look: &Look, dir: &Forwards) -> String {
    let observations = Observations::read(&look.fleet.host.stado_home);
    let (now, target) = (Timestamp::now(), &report.target);
    let mut lines = Vec::new();
    for Published { service, url, marker, .. } in &report.published {
        let observed = observations.text(&fact(service, target), now);
        lines.push(format!("{service} -> {url} ({}) [observed {observed}]", marker.display()));
    }
    lines.extend(report.skipped.iter().map(|s| format!("{}: {}", s.service, s.reason)));
    for Fossil { service, url, marker, age_seconds } in &report.fossil {
        let (marker, age) = (marker.display(), age::ago(*age_seconds));
        lines.push(format!(
            "fossil {service} -> {url} ({marker}, last written {age}); service_directory declares no endpoint for {target}"
        ));
    }
    for pruned in report.pruned.iter().flatten() {
        let error = pruned.error.as_deref().map(|e| format!(": {e}")).unwrap_or_default();
        lines.push(format!("pruned {}: {} {}{error}", pruned.service, pruned.status, pruned.marker.display()));
    }
    lines.push(format!(
        "{} marker(s) in {}, {} declared by the directory for {target}, {} it does not",
        report.markers_present,
        dir.dir().display(),
        report.markers_declared,
        report.fossil.len()
    ));
    if report.pruned.is_none() && !report.fossil.is_empty() {
        lines.push("nothing was removed; `--prune` removes exactly the markers listed above".to_owned());
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn conclude(report: &Report, failed: &[(String, stado_fleet::disk::DiskError)]) -> Verb {
    for (service, error) in failed {
        ui::note(format_args!("{service}: {error}"));
    }
    if !failed.is_empty() {
        return Err(Failure::here(format!(
            "{} forward marker(s) could not be written; each is reported above with the filesystem's own words",
            failed.len()
        )));
    }
    match report.pruned.iter().flatten().filter(|p| p.error.is_some()).count() {
        0 => Ok(Outcome::Done),
        n => Err(Failure::here(format!(
            "{n} forward marker(s) could not be removed; each is reported above with the filesystem's own words"
        ))),
    }
}
