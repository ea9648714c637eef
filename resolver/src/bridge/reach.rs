//! Since when each published service that this host uses has not been reached. Pure: what was counted and the moment go in.
use super::plan::{LONG, shown};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What this host saw of a service that another host publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Service.
    pub service: String,
    /// The host that publishes it.
    pub host: String,
    /// Connections that reached it so far.
    pub opened: u64,
    /// The last one that did not: when, and why.
    pub failed: Option<(Timestamp, String)>,
}

/// What was seen before.
#[derive(Debug, Default)]
pub struct Watch(BTreeMap<String, Seen>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    opened: u64,
    failing: Option<Timestamp>,
}

impl Watch {
    /// Takes a look in; a sentence for each service that nobody has reached for long, though somebody tried.
    pub fn look(&mut self, all: &[Reach], now: Timestamp) -> Vec<String> {
        self.0.retain(|service, _| all.iter().any(|reach| reach.service == *service));
        all.iter().filter_map(|reach| self.one(reach, now)).collect()
    }

    fn one(&mut self, reach: &Reach, now: Timestamp) -> Option<String> {
        let fresh = Seen { opened: reach.opened, failing: None };
        let seen = self.0.entry(reach.service.clone()).or_insert(fresh);
        if reach.opened > seen.opened {
            *seen = fresh;
        }
        let (at, why) = reach.failed.as_ref()?;
        let since = *seen.failing.get_or_insert(*at);
        let long = now.duration_since(since).unsigned_abs() > LONG;
        long.then(|| {
            let Reach { service, host, .. } = reach;
            let since = shown(since);
            format!(
                "{service} is published by {host}, and no connection has reached it since {since} ({why}); if {host} does not \
                 come back, `stado service unpublish {service} --host {host}` takes it out of the directory"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(opened: u64, failed: Option<&str>) -> Reach {
        let failed = failed.map(|at| (at.parse().unwrap(), "the host is down".to_owned()));
        Reach { service: "orders".into(), host: "desk".into(), opened, failed }
    }

    #[test]
    fn a_publisher_that_nobody_has_reached_for_an_hour_is_named_until_somebody_does() {
        let (mut watch, at) = (Watch::default(), |text: &str| text.parse::<Timestamp>().unwrap());
        let mut look = |reach: Reach, now: &str| watch.look(&[reach], at(now));
        assert!(look(reach(3, None), "2026-12-01T10:00:00Z").is_empty());
        assert!(look(reach(3, Some("2026-12-01T10:01:00Z")), "2026-12-01T10:02:00Z").is_empty());
        let said = look(reach(3, Some("2026-12-01T11:30:00Z")), "2026-12-01T11:31:00Z");
        assert_eq!(said.len(), 1);
        let beginning = "orders is published by desk, and no connection has reached it since 2026-12-01T10:01:00Z (the \
                         host is down); ";
        assert!(said[0].starts_with(beginning), "{said:?}");
        // It was reached, and the old failure is not a new one.
        let old = Some("2026-12-01T11:30:00Z");
        assert!(look(reach(4, None), "2026-12-01T11:32:00Z").is_empty());
        assert!(look(reach(5, old), "2026-12-01T11:33:00Z").is_empty());
        assert!(watch.look(&[], at("2026-12-01T12:00:00Z")).is_empty());
    }
}
