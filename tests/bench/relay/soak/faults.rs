//! What goes wrong, in turn.
use super::answers;
use super::churn::Tally;
use crate::support::fleet::Fleet;
use crate::support::process::{descendants, signal_pid};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The sessions of the data host's sshd are killed.
    SessionsDie,
    /// Its sshd and all sessions stand still for a while.
    SshdStands,
    /// The far ends of its multiplexes stand still for a while.
    RelayStands,
    /// Its sshd and all sessions are killed, and it comes back.
    SshdDies,
    /// The authority's daemon is killed, and it comes back.
    AuthorityDies,
    /// The sessions of the authority's sshd are killed.
    WatchesDie,
}

impl Fault {
    pub const ALL: [Self; 6] =
        [Self::SessionsDie, Self::WatchesDie, Self::SshdStands, Self::AuthorityDies, Self::RelayStands, Self::SshdDies];

    /// Lets it happen and waits until a service of the data host, at `port`, answers again.
    pub fn happens(self, fleet: &mut Fleet, tally: &Tally, port: u16) {
        let sshd = |fleet: &mut Fleet, host: &str| fleet.host(host).sshd.as_ref().unwrap().pid();
        let data = sshd(fleet, "data");
        match self {
            // What these break is no stream of anybody.
            Self::WatchesDie => {
                let sessions = descendants(sshd(fleet, "authority"));
                sessions.into_iter().for_each(|pid| signal_pid(pid, Signal::KILL));
                return;
            }
            Self::AuthorityDies => {
                let authority = fleet.host("authority");
                authority.kill9();
                authority.serve();
                authority.ready();
                return;
            }
            _ => tally.fault(true),
        }
        match self {
            Self::SessionsDie => descendants(data).into_iter().for_each(|pid| signal_pid(pid, Signal::KILL)),
            Self::SshdStands => stand(&descendants(data).into_iter().chain([data]).collect::<Vec<_>>()),
            Self::RelayStands => stand(&relays(data)),
            _ => {
                let host = fleet.host("data");
                let mut sshd = host.sshd.take().unwrap();
                sshd.down();
                sshd.up(&host.home);
                host.sshd = Some(sshd);
            }
        }
        answers(port);
        tally.fault(false);
    }
}

fn stand(pids: &[u32]) {
    pids.iter().for_each(|pid| signal_pid(*pid, Signal::STOP));
    sleep(Duration::from_secs(5));
    pids.iter().for_each(|pid| signal_pid(*pid, Signal::CONT));
}

fn relays(sshd: u32) -> Vec<u32> {
    let is_relay = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|b| *b == 0).collect::<Vec<_>>().ends_with(&[b"resolver", b"relay", b""])
    };
    descendants(sshd).into_iter().filter(is_relay).collect()
}
