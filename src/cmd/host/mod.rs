//! `stado host …`: the hosts of the fleet, as they are.
mod exec;
mod inventory;
mod ping;

pub(crate) use exec::exec;
pub(crate) use inventory::{Beacon, beacon, beacon_question, heard, inventory, ports_in_use, version_drift};
pub(crate) use ping::{Tried, ping, try_all, unreached};

use crate::config::parse_duration;
use crate::exit::Failure;
use std::time::Duration;

/// Reads `--timeout`.
pub(crate) fn patience(text: &str) -> Result<Duration, Failure> {
    parse_duration(text).filter(|limit| !limit.is_zero()).ok_or_else(|| {
        Failure::usage(format!("--timeout {text:?} is no time to wait: write it like 15s or 2m, and above zero"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_positive_duration() {
        assert_eq!(patience("1m30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "0", "0s", "15", "soon"] {
            assert_eq!(patience(bad).unwrap_err().class, stado_fleet::fault::Class::Usage, "{bad}");
        }
    }
}
