//! Whether the terminal that a daemon was started in is still there.
use std::fs::File;

/// What was so when the daemon started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    attached: bool,
}

impl Terminal {
    /// Looks. Whoever started the daemon so that it ignores hang-ups (`nohup`) wants it to outlive the terminal.
    pub(super) fn now() -> Self {
        Self { attached: opens() && !hangups_are_ignored(&own_status()) }
    }

    /// Whether there was one and it is closed.
    pub(super) fn is_gone(self) -> bool {
        self.attached && !opens()
    }
}

fn opens() -> bool {
    File::open("/dev/tty").is_ok()
}

fn own_status() -> String {
    std::fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// Signal 1 in the mask of ignored ones.
fn hangups_are_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert!(hangups_are_ignored("Name:\tx\nSigIgn:\t0000000000000001\n"));
        assert!(!hangups_are_ignored("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!hangups_are_ignored(""));
    }
}
