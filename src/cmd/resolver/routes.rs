//! Each route with what is known of it, and what is wrong with it. Pure.
use super::verdict::{Adapter, Facts};
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::fault::Hop;
use stado_fleet::ledger::{self, Answers, LinkState, ResolverState, RouteFailure, RouteState};
use std::collections::HashMap;
use std::time::Duration;

/// One adapter's route; field order is the order of the JSON.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Route {
    pub(crate) service: String,
    pub(crate) consumer: String,
    pub(crate) bind: Option<String>,
    /// Where the directory places the service, else where the latest connection was led.
    pub(crate) active_host: Option<String>,
    pub(crate) endpoint: Option<String>,
    /// `local`, `multiplex` or `direct-tcpip`, once the host was asked for.
    pub(crate) carrier: Option<String>,
    /// Connection path of the session.
    pub(crate) path: Option<String>,
    pub(crate) rtt_us: Option<u64>,
    pub(crate) active: u64,
    pub(crate) opened: u64,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) up_per_second: u64,
    pub(crate) down_per_second: u64,
    pub(crate) last_success_at: Option<String>,
    pub(crate) last_failure: Option<RouteFailure>,
    /// When a probe of this host's own last reached the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_probe_at: Option<String>,
    #[serde(flatten)]
    pub(crate) answers: Answers,
    /// Connections that wait longer than the refresh interval.
    pub(crate) waiting: usize,
    /// What stands in the way now.
    pub(crate) trouble: Option<Trouble>,
}

/// Where on the way something is wrong, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Trouble {
    /// `adapter`, `session`, `channel` or `service`.
    pub(crate) hop: &'static str,
    pub(crate) cause: String,
}

/// Where the directory places a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) endpoint: String,
    /// On the host that is reported on.
    pub(crate) local: bool,
}

/// The route of each declared adapter of this host. `down`: why no adapter at all is served.
pub(super) fn routes(facts: &Facts, alive: Option<&ResolverState>, down: Option<&str>, now: Timestamp) -> Vec<Route> {
    let seen: HashMap<Key<'_>, &RouteState> =
        facts.routes.iter().map(|row| ((row.service.as_str(), row.consumer.as_str()), row)).collect();
    let mut held: HashMap<Key<'_>, Vec<&ledger::Wait>> = HashMap::new();
    for wait in facts.held_waits(now) {
        held.entry((&wait.service, &wait.consumer)).or_default().push(wait);
    }
    let one = |adapter: &Adapter| {
        let key = (adapter.service.as_str(), adapter.consumer.as_str());
        let mut route =
            facts_of(facts, alive, adapter, seen.get(&key).map_or_else(RouteState::default, |row| (*row).clone()));
        let waits = held.get(&key).map(Vec::as_slice).unwrap_or_default();
        route.waiting = waits.len();
        route.trouble = trouble(&route, adapter, alive, down, waits.first().copied(), (now, facts.refresh()));
        route
    };
    facts.adapters.iter().map(one).collect()
}

/// Service and consumer.
type Key<'a> = (&'a str, &'a str);

fn facts_of(facts: &Facts, alive: Option<&ResolverState>, adapter: &Adapter, seen: RouteState) -> Route {
    let Adapter { service, consumer, bind, place, .. } = adapter;
    let (host, endpoint) = match place {
        Some(place) => (Some(place.host.clone()), Some(place.endpoint.clone())),
        None => (seen.active_host.clone(), seen.endpoint.clone()),
    };
    let link = host.as_ref().and_then(|host| alive?.links.iter().find(|link| link.host == *host));
    let local = place.as_ref().is_some_and(|place| place.local);
    // What a resolver that is gone had open is closed.
    let RouteState { active, up_per_second, down_per_second, .. } =
        alive.map_or_else(RouteState::default, |_| seen.clone());
    Route {
        service: service.clone(),
        consumer: consumer.clone(),
        bind: bind.clone(),
        active_host: host,
        endpoint,
        carrier: if local { Some("local".to_owned()) } else { link.map(|link| link.carrier.clone()) },
        path: link.map(|link| link.path.clone()).filter(|_| !local),
        rtt_us: link.and_then(|link| link.rtt_us).filter(|_| !local),
        active,
        opened: seen.opened,
        bytes_up: seen.bytes_up,
        bytes_down: seen.bytes_down,
        up_per_second,
        down_per_second,
        last_success_at: seen.last_success_at,
        last_failure: seen.last_failure,
        last_probe_at: seen.last_probe_at,
        answers: facts.answers.get(service).cloned().unwrap_or_default(),
        ..Route::default()
    }
}

/// The first thing that stands in the way, from the client on.
fn trouble(
    route: &Route,
    adapter: &Adapter,
    alive: Option<&ResolverState>,
    down: Option<&str>,
    wait: Option<&ledger::Wait>,
    (now, refresh): (Timestamp, Duration),
) -> Option<Trouble> {
    let at = |hop: Hop, cause: String| Some(Trouble { hop: hop.code(), cause });
    if let Some(why) = down {
        return at(Hop::Adapter, why.to_owned());
    }
    let of_this = |u: &&ledger::Unserved| u.service == route.service && u.consumer == route.consumer;
    if let Some(unserved) = alive.and_then(|state| state.unserved.iter().find(of_this)) {
        return at(Hop::Adapter, unserved.reason.clone());
    }
    if adapter.listening == Some(false) {
        return at(Hop::Adapter, format!("nothing is listening at {}", adapter.shown_bind()));
    }
    if let Some(wait) = wait {
        return at(hop_of(wait, route), ledger::wait_sentence(wait, now));
    }
    let seen = RouteState {
        last_success_at: route.last_success_at.clone(),
        last_failure: route.last_failure.clone(),
        last_probe_at: route.last_probe_at.clone(),
        ..RouteState::default()
    };
    if let Some(failure) = seen.failing() {
        return Some(Trouble { hop: known(&failure.hop), cause: failure.cause.clone() });
    }
    at(Hop::Service, ledger::unanswered_sentence(&route.service, &route.answers, refresh)?)
}

/// What a wait stands behind.
fn hop_of(wait: &ledger::Wait, route: &Route) -> Hop {
    match (wait.phase.as_str(), route.carrier.as_deref()) {
        ("answer", _) | (_, Some("local")) => Hop::Service,
        (_, Some(_)) => Hop::Channel,
        (_, None) => Hop::Session,
    }
}

/// A word of a later build counts as the last hop.
fn known(hop: &str) -> &'static str {
    let all = [Hop::Adapter, Hop::Session, Hop::Channel, Hop::Service];
    all.into_iter().find(|known| known.code() == hop).unwrap_or(Hop::Service).code()
}

impl Route {
    /// Whether there is anything to tell of it.
    pub(super) fn was_used(&self) -> bool {
        self.active > 0 || self.last_success_at.is_some() || self.last_failure.is_some()
    }

    /// The line for people.
    pub(super) fn line(&self) -> String {
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mut line = format!("route {} consumer={} -> {}", self.service, self.consumer, dash(&self.endpoint));
        line.push_str(&format!(" on {} {}", dash(&self.active_host), dash(&self.carrier)));
        line.extend(self.path.iter().map(|path| format!(" path={path}")));
        line.extend(self.rtt_us.map(|us| format!(" rtt={}", millis(us))));
        line.push_str(&format!(
            " active={} opened={} up={} down={} last-success={}",
            self.active,
            self.opened,
            rate(self.up_per_second),
            rate(self.down_per_second),
            dash(&self.last_success_at)
        ));
        if let Some(failure) = &self.last_failure {
            line.push_str(&format!(" last-failure={} ({})", failure.at, failure.sentence()));
        }
        line
    }

    /// What is worth saying of a route that blocks nothing.
    pub(super) fn warning(&self) -> Option<String> {
        let trouble = self.trouble.as_ref()?;
        let failure = self.last_failure.as_ref().filter(|failure| failure.cause == trouble.cause)?;
        Some(format!(
            "the {} adapter for consumer {} at {} has reached nothing since {}: {}",
            self.service,
            self.consumer,
            self.bind.as_deref().unwrap_or("-"),
            failure.at,
            failure.sentence()
        ))
    }
}

/// `0.3ms`.
pub(crate) fn millis(us: u64) -> String {
    format!("{:.1}ms", Duration::from_micros(us).as_secs_f64() * 1e3)
}

/// `0B/s`, `1.2KiB/s`, `3.4MiB/s`.
pub(crate) fn rate(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes}B/s");
    }
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, 0);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{}{}/s", tenths / 10, tenths % 10, UNITS.get(unit).copied().unwrap_or("TiB"))
}

/// The carrier of a host, for people.
pub(super) fn link_line(link: &LinkState) -> String {
    let rtt = link.rtt_us.map_or_else(String::new, |us| format!(" rtt={}", millis(us)));
    let streams = if link.carrier == "multiplex" { format!(" streams={}", link.streams) } else { String::new() };
    let reason = link.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("link {} {} path={}{rtt}{streams}{reason}", link.host, link.carrier, link.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_as_long_as_they_need_to_be() {
        let shown = [0, 1023, 1024, 1_258_291, 5 << 30, u64::MAX].map(rate);
        assert_eq!(shown[..5], ["0B/s", "1023B/s", "1.0KiB/s", "1.1MiB/s", "5.0GiB/s"]);
        assert!(shown[5].ends_with("TiB/s"));
    }

    #[test]
    fn the_carrier_of_a_host_is_told_with_its_reason() {
        let far = LinkState { host: "far".into(), path: "primary".into(), ..LinkState::default() };
        let good = LinkState { carrier: "multiplex".into(), rtt_us: Some(340), streams: 2, ..far.clone() };
        assert_eq!(link_line(&good), "link far multiplex path=primary rtt=0.3ms streams=2");
        let plain = LinkState { carrier: "direct-tcpip".into(), reason: Some("no stado there".into()), ..far };
        assert_eq!(link_line(&plain), "link far direct-tcpip path=primary (no stado there)");
    }
}
