//! Rates, made of the counters of two overviews. Pure.
use stado_fleet::wire::{Overview, Traffic};
use std::collections::HashMap;

/// Two overviews that are closer say nothing of a rate.
const APART_MS: i64 = 200;

/// What one service does in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// Requests, of a service that has any, else connections.
    pub(super) new: f64,
    /// Bytes to it.
    pub(super) up: f64,
    /// Bytes from it.
    pub(super) down: f64,
}

/// What was counted when, and what that makes.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pid: u32,
    at_ms: i64,
    seen: HashMap<String, Seen>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    traffic: Traffic,
    rates: Option<Rates>,
    /// When its count of good ends last rose, in milliseconds since 1970.
    worked_ms: Option<i64>,
}

impl Meter {
    /// Takes an overview. A daemon of the first version counts nothing; one that was started anew counts from zero.
    pub(super) fn read(&mut self, overview: &Overview) {
        if overview.at_ms == 0 {
            return self.forget();
        }
        if overview.pid != self.pid {
            self.forget();
        }
        let apart = overview.at_ms - self.at_ms;
        if !self.seen.is_empty() && (0..APART_MS).contains(&apart) {
            return;
        }
        let row = |traffic: Traffic, before: Option<&Seen>| {
            let Some(before) = before.filter(|before| apart > 0 && rose(&before.traffic, &traffic)) else {
                return Seen { traffic, ..Seen::default() };
            };
            let worked = good(&traffic) > good(&before.traffic);
            let worked_ms = if worked { Some(overview.at_ms) } else { before.worked_ms };
            Seen { traffic, rates: Some(rates(&before.traffic, &traffic, apart)), worked_ms }
        };
        let all = overview.services.iter();
        self.seen = all.map(|service| (service.id.clone(), row(service.traffic, self.seen.get(&service.id)))).collect();
        (self.pid, self.at_ms) = (overview.pid, overview.at_ms);
    }

    /// Nothing that was counted is comparable any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn rates(&self, id: &str) -> Option<Rates> {
        self.seen.get(id)?.rates
    }

    /// When a connection or request was last seen to come to a good end, in milliseconds since 1970.
    pub(super) fn worked_ms(&self, id: &str) -> Option<i64> {
        self.seen.get(id)?.worked_ms
    }
}

/// Connections that reached the backend, and requests that it answered well.
fn good(traffic: &Traffic) -> u64 {
    match traffic.requests {
        0 => traffic.opened,
        requests => requests.saturating_sub(traffic.failed),
    }
}

fn rose(before: &Traffic, now: &Traffic) -> bool {
    before.requests <= now.requests
        && before.opened <= now.opened
        && before.bytes_up <= now.bytes_up
        && before.bytes_down <= now.bytes_down
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown with two digits")]
fn rates(before: &Traffic, now: &Traffic, apart_ms: i64) -> Rates {
    let a_second = |before: u64, now: u64| now.saturating_sub(before) as f64 * 1000.0 / apart_ms as f64;
    let new = match now.requests {
        0 => a_second(before.opened, now.opened),
        requests => a_second(before.requests, requests),
    };
    Rates { new, up: a_second(before.bytes_up, now.bytes_up), down: a_second(before.bytes_down, now.bytes_down) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::wire::Standing;

    fn overview(at_ms: i64, pid: u32, traffic: Traffic) -> Overview {
        let service = Standing { id: "mesh/db".into(), traffic, ..Standing::default() };
        Overview { at_ms, pid, services: vec![service], ..Overview::default() }
    }

    fn counted(requests: u64, opened: u64, bytes_up: u64, bytes_down: u64) -> Traffic {
        Traffic { requests, opened, bytes_up, bytes_down, ..Traffic::default() }
    }

    #[test]
    fn a_rate_is_what_two_overviews_differ_by_over_the_time_between_them() {
        let mut meter = Meter::default();
        meter.read(&overview(1000, 1, counted(0, 10, 0, 1000)));
        assert_eq!(meter.rates("mesh/db"), None, "one overview is no rate");
        meter.read(&overview(3000, 1, counted(0, 14, 600, 5000)));
        assert_eq!(meter.rates("mesh/db"), Some(Rates { new: 2.0, up: 300.0, down: 2000.0 }));
        meter.read(&overview(3100, 1, counted(0, 99, 600, 5000)));
        assert_eq!(meter.rates("mesh/db").unwrap().new, 2.0, "a tenth of a second says nothing");
        meter.read(&overview(4000, 1, counted(5, 14, 600, 5000)));
        assert_eq!(meter.rates("mesh/db").unwrap().new, 5.0, "requests where there are any");
    }

    #[test]
    fn a_daemon_that_was_started_anew_has_no_rate_until_it_was_asked_twice() {
        let mut meter = Meter::default();
        meter.read(&overview(1000, 1, counted(0, 10, 0, 0)));
        meter.read(&overview(2000, 2, counted(0, 12, 0, 0)));
        assert_eq!(meter.rates("mesh/db"), None);
        meter.read(&overview(3000, 2, counted(0, 3, 0, 0)));
        assert_eq!(meter.rates("mesh/db"), None, "counters that fall are other counters");
        meter.read(&overview(4000, 2, counted(0, 4, 0, 0)));
        assert_eq!(meter.rates("mesh/db").unwrap().new, 1.0);
        meter.read(&Overview::default());
        assert_eq!(meter.rates("mesh/db"), None, "a daemon that counts nothing has no rates");
    }

    #[test]
    fn what_worked_is_known_by_its_good_ends() {
        let mut meter = Meter::default();
        let failed = |requests, failed| Traffic { requests, failed, ..Traffic::default() };
        meter.read(&overview(1000, 1, failed(1, 1)));
        meter.read(&overview(2000, 1, failed(2, 2)));
        assert_eq!(meter.worked_ms("mesh/db"), None);
        meter.read(&overview(3000, 1, failed(3, 2)));
        meter.read(&overview(4000, 1, failed(4, 3)));
        assert_eq!(meter.worked_ms("mesh/db"), Some(3000));
    }
}
