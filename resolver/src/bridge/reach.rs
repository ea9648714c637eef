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
    /// When a connection reached it last.
    pub reached: Option<Timestamp>,
    /// The last one that did not: when, and why.
    pub failed: Option<(Timestamp, String)>,
}

/// Since when each service is not reached any more.
#[derive(Debug, Default)]
pub struct Watch(BTreeMap<String, Timestamp>);

impl Watch {
    /// Takes a look in; a sentence for each service that nobody has reached for long, though somebody tried.
    pub fn look(&mut self, all: &[Reach], now: Timestamp) -> Vec<String> {
        self.0.retain(|service, _| all.iter().any(|reach| reach.service == *service));
        all.iter().filter_map(|reach| self.one(reach, now)).collect()
    }

    fn one(&mut self, reach: &Reach, now: Timestamp) -> Option<String> {
        let Reach { service, host, reached, failed } = reach;
        // A failure before the last success is over.
        let Some((at, why)) = failed.as_ref().filter(|(at, _)| reached.is_none_or(|reached| reached <= *at)) else {
            self.0.remove(service);
            return None;
        };
        let since = self.0.entry(service.clone()).or_insert(*at);
        if reached.is_some_and(|reached| reached > *since) {
            *since = *at;
        }
        let long = now.duration_since(*since).unsigned_abs() > LONG;
        long.then(|| {
            let since = shown(*since);
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

    #[test]
    fn a_publisher_that_nobody_has_reached_for_an_hour_is_named_until_somebody_does() {
        let at = |time: &str| format!("2026-12-01T{time}Z").parse::<Timestamp>().unwrap();
        let mut watch = Watch::default();
        let mut look = |reached: Option<&str>, failed: Option<&str>, now: &str| {
            let failed = failed.map(|time| (at(time), "the host is down".to_owned()));
            let reach = Reach { service: "orders".into(), host: "desk".into(), reached: reached.map(at), failed };
            watch.look(&[reach], at(now))
        };
        assert!(look(Some("10:00:00"), None, "10:00:30").is_empty());
        assert!(look(Some("10:00:00"), Some("10:01:00"), "10:02:00").is_empty());
        let said = look(Some("10:00:00"), Some("11:30:00"), "11:31:00");
        assert_eq!(said.len(), 1);
        let beginning = "orders is published by desk, and no connection has reached it since 2026-12-01T10:01:00Z (the \
                         host is down); ";
        assert!(said[0].starts_with(beginning), "{said:?}");
        // It was reached: the old failure is over, however long ago it was.
        for now in ["11:32:00", "14:00:00"] {
            assert!(look(Some("11:31:30"), Some("11:30:00"), now).is_empty(), "{now}");
        }
        // Reached and lost again between two looks: the time counts from the loss.
        assert!(look(Some("14:10:00"), Some("14:11:00"), "15:00:00").is_empty());
        assert!(look(Some("15:05:00"), Some("15:06:00"), "15:20:00").is_empty());
        assert_eq!(look(Some("15:05:00"), Some("16:00:00"), "16:30:00").len(), 1);
        assert!(watch.look(&[], at("17:00:00")).is_empty());
    }
}
