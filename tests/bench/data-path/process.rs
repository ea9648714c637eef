//! What the system says about processes.
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::fs::{read_dir, read_to_string};
use std::process::Child;
use std::time::Duration;

/// A started proxy with all its processes. Dropping it ends them.
pub struct Tree {
    child: Child,
}

impl Tree {
    pub fn new(child: Child) -> Self {
        Self { child }
    }

    pub fn pids(&self) -> Vec<u32> {
        let mut parents = Vec::new();
        for entry in read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let stat = read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
            parents.extend(parent.map(|parent| (pid, parent)));
        }
        let mut found = vec![self.child.id()];
        let mut next = 0;
        while let Some(&parent) = found.get(next) {
            found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
            next += 1;
        }
        found
    }

    /// CPU time that all its threads have used, and the children that it has waited for.
    pub fn cpu(&self) -> Duration {
        let threads: u64 = self.pids().iter().flat_map(|pid| thread_times(*pid)).sum();
        Duration::from_nanos(threads) + waited(self.child.id())
    }

    /// Its share of memory, in bytes.
    pub fn memory(&self) -> u64 {
        let pss = |pid: &u32| {
            let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        self.pids().iter().map(pss).sum::<u64>() * 1024
    }

    pub fn descriptors(&self) -> usize {
        self.pids().iter().map(|pid| read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)).sum()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for pid in self.pids() {
            signal(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Nanoseconds on a processor of every thread of a process.
fn thread_times(pid: u32) -> Vec<u64> {
    let tasks = read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let first = |text: String| text.split_ascii_whitespace().next().and_then(|n| n.parse().ok());
    tasks.filter_map(|task| first(read_to_string(task.path().join("schedstat")).ok()?)).collect()
}

/// User and system time of the children that were waited for, which is told in ticks of 10 ms.
fn waited(pid: u32) -> Duration {
    let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
    let ticks = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(13) + ticks(14)))
}

/// The soft limit of descriptors is raised to the hard one, for this process and what it starts.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

pub fn may_change_user() -> bool {
    let may = rustix::process::geteuid().is_root();
    if !may {
        println!("not root: the lines of an ordinary user are left out");
    }
    may
}

/// One, five and fifteen minutes.
pub fn load_average() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
