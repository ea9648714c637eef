//! The report for people: what has to be put right, what is worth knowing, then how everything stands.
use super::conclude::{Report, Trouble, Waiting};
use super::once::Once;
use crate::cmd::age;
use crate::cmd::resolver::Report as FleetReport;
use crate::ui::{clean, wrapped};
use jiff::Timestamp;
use stado_fleet::wire::Standing;

/// Columns of a line.
const WIDTH: usize = 96;
/// Services that work and are shown without being asked for; what does not work is always shown.
const SHOWN: usize = 20;

/// The screen. `all`: every service.
pub(super) fn text(report: &Report, all: bool) -> String {
    let now = report.generated_at.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let mut lines = vec![headline(report)];
    for (severity, title) in [("fail", "TO PUT RIGHT"), ("warn", "WORTH KNOWING")] {
        let of: Vec<&Trouble> = report.troubles.iter().filter(|trouble| trouble.severity == severity).collect();
        if !of.is_empty() {
            lines.push(format!("\n{title}"));
            of.into_iter().for_each(|trouble| lines.extend(told(trouble, now)));
        }
    }
    lines.extend(match report.daemon.answers {
        true => services(report, now, all),
        false => vec!["\nSERVICES  not known: the daemon does not answer".to_owned()],
    });
    if !report.waits.is_empty() {
        lines.push("\nWAITING".to_owned());
        lines.extend(report.waits.iter().map(waiting));
    }
    lines.push(String::new());
    lines.extend(parts(report));
    lines.join("\n") + "\n"
}

/// The first line: who, the verdict, and how much there is to do.
pub(crate) fn headline(report: &Report) -> String {
    let of = |severity: &str| report.troubles.iter().filter(|trouble| trouble.severity == severity).count();
    let things = match (of("fail"), of("warn")) {
        (0, 0) => "nothing to put right".to_owned(),
        (0, n) => format!("nothing to put right, {n} worth knowing"),
        (n, 0) => format!("{n} to put right"),
        (n, m) => format!("{n} to put right, {m} worth knowing"),
    };
    format!("{}: {}, {things}{}", clean::line(&report.host), report.verdict, not_working(&report.services))
}

/// Services that have nobody behind them, or whose last connection failed: nothing on this host may have to be put right for
/// them, and whoever asks for one must not read that all is well.
fn not_working(rows: &[Standing]) -> String {
    let unavailable = rows.iter().filter(|row| !matches!(row.state.as_str(), "ready" | "unserved")).count();
    let failing = rows.iter().filter(|row| row.state == "ready" && row.last_error.is_some()).count();
    let counts = [(unavailable, "unavailable"), (failing, "failing")].into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    match counts.is_empty() {
        true => String::new(),
        false => format!("; of {} services {}", rows.len(), counts.join(", ")),
    }
}

fn told(trouble: &Trouble, now: Timestamp) -> Vec<String> {
    let since = trouble.since.as_deref().and_then(|since| age_of(since, now)).map(|age| format!(" (since {age})"));
    let mark = if trouble.severity == "fail" { '!' } else { '-' };
    let mut lines =
        wrapped(&format!("  {mark} {}: {}{}", trouble.about, trouble.what, since.unwrap_or_default()), 4, WIDTH);
    if let Some(fix) = &trouble.fix {
        lines.extend(wrapped(&format!("    do: {fix}"), 8, WIDTH));
    }
    lines
}

fn age_of(since: &str, now: Timestamp) -> Option<String> {
    let seconds = now.duration_since(since.parse().ok()?).as_secs();
    Some(age::span(u64::try_from(seconds).unwrap_or(0)))
}

fn services(report: &Report, now: Timestamp, all: bool) -> Vec<String> {
    let (rows, once) = (&report.services, Once::of_fleet(report.fleet.as_deref()));
    let of = |state: &str| rows.iter().filter(|row| row.state == state).count();
    let states = ["unserved", "unavailable", "ready"].into_iter().filter(|state| of(state) > 0);
    let states: Vec<String> = states.map(|state| format!("{} {state}", of(state))).collect();
    if rows.is_empty() {
        let first = "stado service register --name web --backend 127.0.0.1:3000";
        return vec![format!("\nSERVICES  none yet; the first one: `{first}`")];
    }
    let mut lines = vec![format!("\nSERVICES  {}", states.join(", "))];
    let work = rows.iter().position(|row| row.state == "ready").unwrap_or(rows.len());
    let shown = if all { rows.len() } else { rows.len().min(work + SHOWN) };
    let cells: Vec<[String; 4]> = rows.iter().take(shown).map(|row| cells(row, now, &once)).collect();
    let width = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (name, state, address) = (width(0), width(1), width(2));
    for [a, b, c, rest] in &cells {
        let line = format!("  {a:name$}  {b:state$}  {c:address$}  {rest}");
        lines.push(line.trim_end().to_owned());
    }
    if shown < rows.len() {
        lines.push(format!("  … and {} more that are ready: `stado status --all`", rows.len() - shown));
    }
    lines
}

/// Name, state, address, and what there is to say.
fn cells(row: &Standing, now: Timestamp, once: &Once) -> [String; 4] {
    let name = if row.consumer.is_empty() { row.name.clone() } else { format!("{} for {}", row.name, row.consumer) };
    let since = age_of(&row.since, now).map(|age| format!(" ({age})")).unwrap_or_default();
    let rest = match (&row.last_error, row.state.as_str()) {
        (Some(error), "ready") => {
            let age = age_of(&error.at, now).unwrap_or_default();
            format!("{}; last error {age} ago: {}", row.place, once.after(&error.cause))
        }
        (_, "ready") => format!("{}{}", row.place, traffic(row)),
        _ => format!("{}{since}", row.reason),
    };
    [clean::line(&name), row.state.clone(), clean::line(&row.address), clean::line(&rest)]
}

fn traffic(row: &Standing) -> String {
    match (row.traffic.active, row.traffic.requests, row.traffic.opened) {
        (0, 0, 0) => String::new(),
        (active, 0, opened) => format!(", {active} open of {opened}"),
        (active, requests, _) => format!(", {active} open, {requests} requests"),
    }
}

fn waiting(wait: &Waiting) -> String {
    let what = if wait.phase == "answer" { "for an answer from" } else { "to reach" };
    let client = wait.client.as_ref().map(|client| format!(", client {client}")).unwrap_or_default();
    let Waiting { service, consumer, waited_seconds, endpoint, host, .. } = wait;
    let consumer = if consumer.is_empty() { String::new() } else { format!(" for {consumer}") };
    clean::line(&format!("  {service}{consumer}: {waited_seconds}s {what} {endpoint} on {host}{client}"))
}

/// A line for each part of the daemon.
fn parts(report: &Report) -> Vec<String> {
    let mut lines = vec![daemon(report)];
    lines.extend(
        report.daemon.leaving.iter().map(|gone| {
            format!("          pid {} was taken over and still carries {} stream(s)", gone.pid, gone.streams)
        }),
    );
    let router = &report.router;
    let at = [("http", router.http), ("https", router.https)];
    let at: Vec<String> = at.iter().filter_map(|(name, port)| Some(format!("{name} {}", (*port)?))).collect();
    match &router.index {
        Some(index) => lines.push(format!("ROUTER    {}, all services at {index}", at.join(", "))),
        None => lines.push("ROUTER    off".to_owned()),
    }
    lines.push(match &report.docker {
        None => "DOCKER    not watched".to_owned(),
        Some(engine) if engine.status == "connected" => format!("DOCKER    {} at {}", engine.version, engine.endpoint),
        Some(engine) => format!("DOCKER    {} at {}", engine.status, engine.endpoint),
    });
    lines.extend(fleet(report));
    lines.iter().map(|line| clean::line(line)).collect()
}

fn daemon(report: &Report) -> String {
    match (&report.daemon.version, report.daemon.pid) {
        (Some(version), Some(pid)) => format!("DAEMON    {version}, pid {pid}, {}", report.daemon.socket),
        (Some(version), None) => format!("DAEMON    {version}, {}", report.daemon.socket),
        (None, Some(pid)) if report.daemon.stopped => {
            format!("DAEMON    pid {pid} is stopped by a signal, {}", report.daemon.socket)
        }
        (None, Some(pid)) => format!("DAEMON    pid {pid} does not answer at {}", report.daemon.socket),
        (None, None) => format!("DAEMON    does not answer at {}", report.daemon.socket),
    }
}

fn fleet(report: &Report) -> Vec<String> {
    let Some(fleet) = &report.fleet else { return vec!["FLEET     none: this host is the mesh alone".to_owned()] };
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let held = match (fleet.generation, fleet.generation_age_seconds) {
        (Some(generation), Some(age)) => format!("generation {generation}, read {}", age::ago(age)),
        _ => "no generation held".to_owned(),
    };
    let reached = if fleet.authority.reachable { "answers" } else { "does not answer" };
    let mut lines = vec![format!(
        "FLEET     {}: {}, {held}, authority {} {reached}",
        dash(&fleet.target),
        state(fleet),
        dash(&fleet.authority.target)
    )];
    lines.extend(fleet.links.iter().map(|link| {
        let rtt = link.rtt_us.map(|us| format!(", {}.{} ms", us / 1000, us % 1000 / 100)).unwrap_or_default();
        let reason = link.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!(
            "          {} by {} over {}{rtt}, {} stream(s){reason}",
            link.host, link.carrier, link.path, link.streams
        )
    }));
    lines
}

/// What the resolver says it does, unless it does nothing at all.
fn state(fleet: &FleetReport) -> &str {
    match &fleet.daemon {
        Some(running) if running.stopped => "stopped by a signal",
        Some(running) if running.answering == Some(false) => "running and not answering",
        _ => &fleet.state,
    }
}
