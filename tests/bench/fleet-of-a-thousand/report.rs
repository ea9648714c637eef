//! The figures, as markdown.
use crate::Options;
use std::fmt;
use std::path::Path;
use std::time::Duration;

const BEGIN: &str = "<!-- fleet: begin -->";
const END: &str = "<!-- fleet: end -->";

pub struct Report {
    hosts: usize,
    processes: usize,
    document: usize,
    pub came: Duration,
    pub peak_came: usize,
    /// Processors' share, and bytes.
    pub idle_cpu: f64,
    pub memory_each: f64,
    pub latencies: Vec<Duration>,
    pub change_cpu: Vec<f64>,
    pub change_bytes: Vec<f64>,
    pub read_whole: usize,
    pub back: Duration,
    pub peak_back: usize,
    pub cpu_back: f64,
    pub after_restart: Duration,
}

impl Report {
    pub fn new(options: &Options, document: usize) -> Self {
        Self {
            hosts: options.hosts,
            processes: options.processes,
            document,
            came: Duration::ZERO,
            peak_came: 0,
            idle_cpu: 0.0,
            memory_each: 0.0,
            latencies: Vec::new(),
            change_cpu: Vec::new(),
            change_bytes: Vec::new(),
            read_whole: 0,
            back: Duration::ZERO,
            peak_back: 0,
            cpu_back: 0.0,
            after_restart: Duration::ZERO,
        }
    }

    /// Replaces what stands between the two marks of a page.
    pub fn write(&self, path: &Path) {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (head, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{} has no {BEGIN}", path.display()));
        let (_, tail) = rest.split_once(END).unwrap_or_else(|| panic!("{} has no {END}", path.display()));
        std::fs::write(path, format!("{head}{BEGIN}\n{self}{END}{tail}")).unwrap();
    }
}

fn part(sorted: &[Duration], share: f64) -> Duration {
    sorted
        .get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let ms = |duration: Duration| format!("{:.0} ms", duration.as_secs_f64() * 1e3);
        let mut sorted = self.latencies.clone();
        sorted.sort();
        writeln!(
            f,
            "{cpus} processors, shared by the authority's daemon and {} hosts in {} processes; a registry of {} KiB.\n",
            self.hosts,
            self.processes,
            self.document >> 10
        )?;
        let mut row = |what: &str, figure: String| writeln!(f, "| {what} | {figure} |");
        row("", String::new())?;
        row("---", "---".into())?;
        row(
            "all hosts connect and watch",
            format!("{:.1} s, at most {} in a second", self.came.as_secs_f64(), self.peak_came),
        )?;
        row("authority, memory of an idle watcher", format!("{:.0} KiB", self.memory_each / 1024.0))?;
        row(
            "authority, CPU of all idle watchers",
            format!(
                "{:.1} % of one processor, {:.0} µs a second each",
                self.idle_cpu * 100.0,
                self.idle_cpu * 1e6 / self.hosts as f64
            ),
        )?;
        row(
            "a change, from stored to held: median, 99 of 100, last host",
            format!("{}, {}, {}", ms(part(&sorted, 0.5)), ms(part(&sorted, 0.99)), ms(part(&sorted, 1.0))),
        )?;
        row("a change, bytes on the network for a host, both ways", format!("{:.0}", middle(&self.change_bytes)))?;
        row("a change, CPU of the authority for all hosts", format!("{:.0} ms", middle(&self.change_cpu) * 1e3))?;
        row("hosts that had to read the whole registry for it", format!("{} of {}", self.read_whole, sorted.len()))?;
        row(
            "the authority is killed and starts again: all hosts watch again",
            format!(
                "{:.1} s after, at most {} in a second, {:.1} s of CPU",
                self.back.as_secs_f64(),
                self.peak_back,
                self.cpu_back
            ),
        )?;
        row("the next change reaches the last host", ms(self.after_restart))
    }
}
