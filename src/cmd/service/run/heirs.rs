//! What the program leaves behind when its first process ends: a wrapper starts the real one and leaves. On Linux such
//! processes become ours, so that they can be seen and told; elsewhere there are none that we know of.
use rustix::process::{Pid, Signal, kill_process};

/// From here on, processes that lose their parent below us become our children.
pub(super) fn adopt() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::debug!(%error, "orphans_not_adopted");
    }
}

/// The children that live. To be asked when the first process has ended and was waited for: those that have ended too are
/// taken off the process table here.
pub(super) fn living() -> Vec<Pid> {
    children().into_iter().filter(|pid| !has_ended(*pid)).collect()
}

/// Passes a signal on to all of them.
pub(super) fn pass_on(signal: Signal) {
    for pid in living() {
        if let Err(error) = kill_process(pid, signal) {
            tracing::warn!(%error, ?signal, "signal_not_passed_on");
        }
    }
}

fn has_ended(pid: Pid) -> bool {
    use rustix::process::{WaitOptions, waitpid};
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

/// Every thread of ours may have children.
fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>())
        .collect()
}
