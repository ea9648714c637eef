//! The table, as markdown.
use crate::lines::Line;
use crate::results::Results;
use crate::support;
use crate::way::Kind;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- relay: begin -->";
const END: &str = "<!-- relay: end -->";

pub fn render(results: &Results, rounds: usize, mib: u64, load: &[String; 2]) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut page = format!(
        "{cpus} processors, Linux {}, {}, cipher aes128-gcm, {rounds} rounds, {mib} MiB per transfer (half at 20 ms), medians. \
         Load average before {}, after {}. In brackets: the share of OpenSSH, or of what the line names, and the target.\n\n",
        kernel.trim(),
        openssh(),
        load[0],
        load[1]
    );
    writeln!(page, "| | {} |", Kind::ALL.map(Kind::name).join(" | ")).unwrap();
    writeln!(page, "|---|{}", "---|".repeat(Kind::ALL.len())).unwrap();
    for line in Line::ALL.into_iter().filter(|line| Kind::ALL.iter().any(|kind| results.median(*line, *kind).is_some()))
    {
        let cells = Kind::ALL.map(|kind| cell(results, line, kind));
        writeln!(page, "| {} | {} |", line.label(), cells.join(" | ")).unwrap();
    }
    page
}

fn cell(results: &Results, line: Line, kind: Kind) -> String {
    let Some(value) = results.median(line, kind) else { return "–".into() };
    if !value.is_finite() || value == 0.0 {
        return "**stalled**".into();
    }
    let figure = match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    match (results.share(line, kind), line.target(kind)) {
        (Some(share), Some(target)) if target.holds(share) => format!("{figure} ({share:.2}, {target})"),
        (Some(share), Some(target)) => format!("{figure} (**{share:.2}**, missed {target})"),
        (Some(share), None) if kind != Kind::Openssh || line.own_base().is_some() => format!("{figure} ({share:.2})"),
        _ => figure,
    }
}

fn openssh() -> String {
    let version = Command::new(support::program("ssh").unwrap()).arg("-V").output().unwrap();
    let text = String::from_utf8_lossy(&version.stderr).into_owned();
    text.split([' ', ',']).next().unwrap_or_default().replace('_', " ")
}

/// Replaces what stands between the two marks of a page.
pub fn write(path: &Path, page: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (head, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{} has no {BEGIN}", path.display()));
    let (_, tail) = rest.split_once(END).unwrap_or_else(|| panic!("{} has no {END}", path.display()));
    std::fs::write(path, format!("{head}{BEGIN}\n{page}{END}{tail}")).unwrap();
}
