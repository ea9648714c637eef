//! The link against a real OpenSSH server.
mod carrier;
mod endure;
mod exec;
mod health;
mod known_hosts;
mod paths;
mod recorded;
mod relay;
mod ssh_config;
mod sshd;
mod trust;

use super::*;
use sshd::{Options, Sshd};

const SHORT: Duration = Duration::from_secs(20);

fn limits() -> ExecLimits {
    ExecLimits { stdout: 1 << 20, deadline: SHORT }
}

fn host() -> TargetName {
    "far".parse().unwrap()
}

/// Waits for a condition, never for a time.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SHORT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
