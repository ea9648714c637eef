//! A status report for people (fleet contract §4.10).
use super::routes::{Route, link_line};
use super::verdict::Report;

/// The report as lines for people.
pub(crate) fn text(report: &Report) -> String {
    let or_dash = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let seen = |listening: Option<bool>| match listening {
        Some(true) => "listening",
        Some(false) => "not-listening",
        None => "not-probed",
    };
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut lines = vec![
        format!(
            "resolver {} state={} verdict={} generation={} stale={}",
            dash(&report.target),
            report.state,
            report.verdict,
            or_dash(report.generation),
            if report.stale { "yes" } else { "no" }
        ),
        format!("api {} {}", dash(&report.api.bind), seen(report.api.listening)),
    ];
    for adapter in &report.adapters {
        lines.push(format!(
            "adapter {} consumer={} {} {}",
            adapter.service,
            adapter.consumer,
            dash(&adapter.bind),
            seen(adapter.listening)
        ));
    }
    lines.push(format!(
        "authority {} source={} {} generation={}{}",
        dash(&report.authority.target),
        report.authority.source,
        if report.authority.reachable { "reachable" } else { "unreachable" },
        or_dash(report.authority.generation),
        report.authority.epoch.map(|epoch| format!(" epoch={epoch}")).unwrap_or_default()
    ));
    lines.extend(report.refused.as_ref().map(|given| format!("refused {} since={}", given.name(), given.since)));
    lines.extend(
        report
            .leaving
            .iter()
            .map(|gone| format!("leaving pid={} streams={} taken-over={}", gone.pid, gone.streams, gone.since)),
    );
    lines.extend(report.object_api.iter().map(|url| format!("object-api {url}")));
    lines.extend(report.changes.iter().map(|how| format!("changes {how}")));
    lines.extend(report.links.iter().map(link_line));
    lines.extend(report.routes.iter().filter(|route| route.was_used()).map(Route::line));
    lines.extend(report.blockers.iter().map(|b| format!("blocker {b}")));
    lines.extend(report.warnings.iter().map(|w| format!("warning {w}")));
    lines.join("\n")
}
