//! A status report for people (fleet contract §4.10).
use super::verdict::Report;
use stado_fleet::ledger::LinkState;
use std::time::Duration;

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
    lines.extend(report.links.iter().map(link));
    lines.extend(report.blockers.iter().map(|b| format!("blocker {b}")));
    lines.extend(report.warnings.iter().map(|w| format!("warning {w}")));
    lines.join("\n")
}

fn link(link: &LinkState) -> String {
    let rtt = link
        .rtt_us
        .map_or_else(String::new, |us| format!(" rtt={:.1}ms", Duration::from_micros(us).as_secs_f64() * 1e3));
    let streams = if link.carrier == "multiplex" { format!(" streams={}", link.streams) } else { String::new() };
    let reason = link.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("link {} {} path={}{rtt}{streams}{reason}", link.host, link.carrier, link.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carrier_of_a_host_is_told_with_its_reason() {
        let far = LinkState { host: "far".into(), path: "primary".into(), ..LinkState::default() };
        let good = LinkState { carrier: "multiplex".into(), rtt_us: Some(340), streams: 2, ..far.clone() };
        assert_eq!(link(&good), "link far multiplex path=primary rtt=0.3ms streams=2");
        let plain = LinkState { carrier: "direct-tcpip".into(), reason: Some("no stado there".into()), ..far };
        assert_eq!(link(&plain), "link far direct-tcpip path=primary (no stado there)");
    }
}
