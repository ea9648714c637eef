//! What went through each adapter: `resolver-routes.json` (an addition of Stado), an array.
use serde::{Deserialize, Serialize};

/// One service and consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteState {
    /// Service.
    pub service: String,
    /// Consumer.
    pub consumer: String,
    /// Host that the latest connection was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_host: Option<String>,
    /// Endpoint there, `host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Connections now.
    pub active: u64,
    /// Connections that reached the service, since this resolver started.
    pub opened: u64,
    /// Bytes from clients since then.
    pub bytes_up: u64,
    /// Bytes to clients since then.
    pub bytes_down: u64,
    /// Bytes a second from clients, over the time since the file was last written.
    pub up_per_second: u64,
    /// Bytes a second to clients, likewise.
    pub down_per_second: u64,
    /// When a connection last reached the service, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<String>,
    /// The last connection that did not come to a good end because of the service or the way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<RouteFailure>,
    /// When a probe of this host's own (`connect`) last reached the service: no traffic, and no success of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_at: Option<String>,
}

/// Where and why a connection failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteFailure {
    /// When, RFC 3339 with microseconds.
    pub at: String,
    /// `adapter`, `session`, `channel` or `service`: [`Hop`](crate::fault::Hop).
    pub hop: String,
    /// Why, in words.
    pub cause: String,
    /// Who has to act: [`Blame`](crate::fault::Blame).
    pub blame: String,
}

impl RouteState {
    /// The failure, while nothing has reached the service since.
    pub fn failing(&self) -> Option<&RouteFailure> {
        let failure = self.last_failure.as_ref()?;
        let later = |text: &String| text.parse::<jiff::Timestamp>().ok();
        let reached = [&self.last_success_at, &self.last_probe_at];
        let success = reached.into_iter().filter_map(|at| at.as_ref().and_then(later)).max();
        let failed = later(&failure.at)?;
        success.is_none_or(|success| success <= failed).then_some(failure)
    }
}

impl RouteFailure {
    /// `the <hop> failed: <cause>`.
    pub fn sentence(&self) -> String {
        format!("the {} failed: {}", self.hop, self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_fails_until_something_reaches_its_service_again() {
        let failure = RouteFailure {
            at: "2026-10-20T10:00:05.000000+00:00".into(),
            hop: "session".into(),
            cause: "no path".into(),
            blame: "remote".into(),
        };
        let mut route = RouteState { last_failure: Some(failure.clone()), ..RouteState::default() };
        assert_eq!(route.failing().unwrap().sentence(), "the session failed: no path");
        route.last_success_at = Some("2026-10-20T10:00:04.900000+00:00".into());
        assert_eq!(route.failing(), Some(&failure));
        route.last_success_at = Some("2026-10-20T10:00:05.100000+00:00".into());
        assert_eq!(route.failing(), None);
        route.last_success_at = None;
        route.last_probe_at = Some("2026-10-20T10:00:05.100000+00:00".into());
        assert_eq!(route.failing(), None, "a probe that reaches it shows as much");
    }
}
