//! The table, as markdown.
use crate::lines::{Line, Results, Target};
use crate::options::Options;
use crate::peers::Subject;
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- data-path: begin -->";
const END: &str = "<!-- data-path: end -->";

pub fn render(results: &Results, options: &Options, load: &[String; 2]) -> String {
    let subjects: Vec<Subject> = options.subjects();
    let mut page = environment(&subjects, options, load);
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name()).collect();
    writeln!(page, "| | {} | Stado of direct | target | |", names.join(" | ")).unwrap();
    writeln!(page, "|---|{}", "---|".repeat(subjects.len() + 3)).unwrap();
    for line in results.lines() {
        let cells: Vec<String> = subjects.iter().map(|subject| cell(line, results.median(line, *subject))).collect();
        let of_direct = results.ratio(line, Subject::Stado, Subject::Direct);
        let of_direct = of_direct.filter(|_| !line.is_yes_or_no()).map_or("–".into(), |ratio| format!("{ratio:.2}"));
        let (target, verdict) = judge(line, results);
        writeln!(page, "| {} | {} | {of_direct} | {target} | {verdict} |", line.label(), cells.join(" | ")).unwrap();
    }
    page
}

fn environment(subjects: &[Subject], options: &Options, load: &[String; 2]) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let versions = subjects.iter().filter_map(|subject| {
        let version = subject.version().filter(|version| !version.is_empty())?;
        Some(format!("{} {version}", subject.name()))
    });
    let versions: Vec<String> = versions.collect();
    format!(
        "{cpus} processors, Linux {}, {} rounds with windows of {:.1} s, medians. {}. Load average before {}, after {}.\n\n",
        kernel.trim(),
        options.rounds,
        options.window.as_secs_f64(),
        versions.join(", "),
        load[0],
        load[1]
    )
}

fn cell(line: Line, value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(value) if line.is_yes_or_no() => if value > 0.5 { "yes" } else { "no" }.into(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// The target in words, and whether it is held, with the figure that says so.
fn judge(line: Line, results: &Results) -> (String, String) {
    let held = |yes: bool, figure: f64| format!("{} ({figure:.2})", if yes { "held" } else { "**missed**" });
    let against = |peer: Option<Subject>| peer.and_then(|peer| results.ratio(line, Subject::Stado, peer));
    let best = |largest: bool| {
        let measured = Subject::PEERS.into_iter().filter_map(|peer| Some((results.median(line, peer)?, peer)));
        let ordered = |a: &(f64, Subject), b: &(f64, Subject)| a.0.total_cmp(&b.0);
        if largest { measured.max_by(ordered) } else { measured.min_by(ordered) }.map(|(_, peer)| peer)
    };
    let haproxy = || {
        let both = [Subject::Haproxy, Subject::HaproxySplice].into_iter();
        let measured = both.filter_map(|peer| Some((results.median(line, peer)?, peer)));
        measured.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, peer)| peer)
    };
    let (words, judged) = match line.target() {
        Target::TimesBest(share) => (format!("≥ {share} × best peer"), against(best(true)).map(|r| (r >= share, r))),
        Target::NoWorse(share) => (format!("≤ {share:.1} × best peer"), against(best(false)).map(|r| (r <= share, r))),
        Target::TimesNginx(share) => {
            (format!("≥ {share:.1} × nginx"), against(Some(Subject::Nginx)).map(|r| (r >= share, r)))
        }
        Target::OfNginx(share) => {
            (format!("≤ {share} × nginx"), against(Some(Subject::Nginx)).map(|r| (r <= share, r)))
        }
        Target::OfHaproxy(share) => (format!("≤ {share} × haproxy"), against(haproxy()).map(|r| (r <= share, r))),
        Target::AtMost(most) => {
            (format!("≤ {most}"), results.median(line, Subject::Stado).map(|value| (value <= most, value)))
        }
        Target::Exactly(wanted) => {
            let value = results.median(line, Subject::Stado);
            (format!("{wanted}"), value.map(|value| ((value - wanted).abs() < 0.01, value)))
        }
        Target::None => ("yes".into(), None),
    };
    let verdict = match (judged, results.median(line, Subject::Stado)) {
        (Some((yes, figure)), _) => held(yes, figure),
        (None, Some(value)) if line.is_yes_or_no() => if value > 0.5 { "held" } else { "**missed**" }.into(),
        _ => "–".into(),
    };
    (words, verdict)
}

/// Replaces what stands between the two marks of a page.
pub fn write(path: &Path, page: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (head, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{} has no {BEGIN}", path.display()));
    let (_, tail) = rest.split_once(END).unwrap_or_else(|| panic!("{} has no {END}", path.display()));
    std::fs::write(path, format!("{head}{BEGIN}\n{page}{END}{tail}")).unwrap();
}
