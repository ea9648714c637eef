//! What a beacon is worth: pure, `now` passed in.
use super::super::beacons::{Asked, expected};
use crate::cmd::host::Beacon;
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::document::Target;

/// A beacon may be dated that many seconds ahead of the clock that was read just before it.
const AHEAD: u64 = 2;

/// What a host said.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// Its state file: when that was written, by its own clock, which showed `clock` as it was read.
    Beacon { file: String, reported_at: Timestamp, clock: Option<Timestamp>, state: String },
    /// There is none.
    Absent { file: String },
    /// There is one, and it says nothing.
    Damaged { file: String, why: String },
    /// No path answered.
    Unreachable(String),
    /// The host answered with something else.
    Unread(String),
}

impl Seen {
    /// From what was asked.
    pub(super) fn heard(asked: Asked) -> Self {
        match asked {
            Asked::Published(beacon) => Self::of(*beacon),
            Asked::Unreachable(why) => Self::Unreachable(why),
            Asked::Unread(why) => Self::Unread(why),
        }
    }

    /// From the host's answer.
    pub(super) fn of(Beacon { clock, file, state, .. }: Beacon) -> Self {
        let state = match state {
            Ok(Some(state)) => state,
            Ok(None) => return Self::Absent { file },
            Err(why) => return Self::Damaged { file, why },
        };
        let clock = clock.and_then(|seconds| Timestamp::from_second(seconds).ok());
        match state.updated_at.parse() {
            Ok(reported_at) => Self::Beacon { file, reported_at, clock, state: state.state },
            Err(_) => Self::Damaged { file, why: "it does not say when it was written".to_owned() },
        }
    }
}

/// One host of `--json`; the contract's keys, then ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) host: String,
    pub(super) kind: String,
    /// `fresh`, `stale`, `absent`, `unreachable`, `unread`, `undeclared`.
    pub(super) status: &'static str,
    /// Where the beacon was read.
    pub(super) beacon: Option<String>,
    /// When it was read, by this host's clock.
    pub(super) observed_at: Option<String>,
    /// When the host wrote it, by that host's clock.
    pub(super) reported_at: Option<String>,
    pub(super) age_seconds: Option<u64>,
    /// Age from which it is stale: the target's `max_stale_seconds`.
    pub(super) stale_after_seconds: Option<u64>,
    pub(super) detail: Option<String>,
    #[serde(skip)]
    pub(super) read_now: bool,
}

/// Judges one host. `last` is the beacon that was seen before: when, and when the host wrote it.
///
/// The age is counted on the host's own clock, so that clocks that differ do not make a beacon old or young.
pub(super) fn judge(target: &Target, seen: Option<Seen>, last: Option<(Timestamp, String)>, now: Timestamp) -> Row {
    let limit = target.resolver.as_ref().map(|policy| policy.max_stale_seconds);
    let mut row = Row {
        host: target.name.to_string(),
        kind: target.kind.clone(),
        status: "undeclared",
        beacon: None,
        observed_at: None,
        reported_at: None,
        age_seconds: None,
        stale_after_seconds: limit,
        detail: None,
        read_now: false,
    };
    if !expected(target) {
        return row;
    }
    match seen {
        Some(Seen::Beacon { file, reported_at, clock, state }) => {
            let clock = clock.unwrap_or(now);
            let (age, ahead) = (seconds(clock, reported_at), seconds(reported_at, clock));
            row.beacon = Some(file);
            row.observed_at = Some(stamp(now));
            row.reported_at = Some(stamp(reported_at));
            row.read_now = true;
            // A resolver that refreshes would have written the time of now.
            if ahead > AHEAD {
                row.status = "stale";
                row.detail =
                    Some(format!("state {state}, dated {ahead}s ahead of that host's clock: its age is not known"));
                return row;
            }
            row.status = if limit.is_some_and(|limit| age > limit) { "stale" } else { "fresh" };
            row.age_seconds = Some(age);
            row.detail = Some(format!("state {state}"));
        }
        Some(Seen::Absent { file }) => {
            row.status = "absent";
            row.observed_at = Some(stamp(now));
            row.detail = Some(format!("no resolver has published state at {file}"));
        }
        Some(Seen::Damaged { file, why }) => {
            remembered(&mut row, "unread", format!("{file} says nothing: {why}"), last, now);
            row.beacon = Some(file);
        }
        Some(Seen::Unread(why)) => remembered(&mut row, "unread", why, last, now),
        Some(Seen::Unreachable(why)) => remembered(&mut row, "unreachable", why, last, now),
        None => {
            let why = "it declares no SSH connection path, and is not this host".to_owned();
            remembered(&mut row, "unreachable", why, last, now);
        }
    }
    row
}

fn remembered(row: &mut Row, status: &'static str, why: String, last: Option<(Timestamp, String)>, now: Timestamp) {
    row.status = status;
    row.detail = Some(why);
    if let Some((observed_at, reported)) = last {
        row.observed_at = Some(stamp(observed_at));
        // What it was worth then is not known any more; since then it is at least this old.
        row.age_seconds =
            reported.parse().ok().map(|reported_at| seconds(now, reported_at).max(seconds(now, observed_at)));
        row.reported_at = Some(reported);
    }
}

/// Whole seconds from `then` to `now`; 0 for what lies ahead.
fn seconds(now: Timestamp, then: Timestamp) -> u64 {
    u64::try_from(now.duration_since(then).as_secs()).unwrap_or(0)
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use stado_fleet::document::ResolverPolicy;

    const NOW: &str = "2026-10-20T10:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }
    fn ago(seconds: i64) -> Timestamp {
        now() - SignedDuration::from_secs(seconds)
    }
    fn target(kind: &str, resolver: bool) -> Target {
        let policy = ResolverPolicy {
            api_bind: "127.0.0.1:17600".parse().unwrap(),
            refresh_seconds: 5,
            max_stale_seconds: 15,
            adapters: Vec::new(),
        };
        Target {
            name: "worker".parse().unwrap(),
            kind: kind.into(),
            paths: Vec::new(),
            hostnames: Vec::new(),
            stado_command: None,
            host_keys: Vec::new(),
            resolver_keys: Vec::new(),
            resolver: resolver.then_some(policy),
        }
    }
    fn judged(seen: Option<Seen>, last: Option<(Timestamp, String)>) -> Row {
        judge(&target("local", true), seen, last, now())
    }
    fn beacon(reported_at: Timestamp, clock: Timestamp) -> Option<Seen> {
        Some(Seen::Beacon { file: "/s".into(), reported_at, clock: Some(clock), state: "serving".into() })
    }

    #[test]
    fn a_beacon_is_stale_past_the_targets_own_window() {
        let row = judged(beacon(ago(15), now()), None);
        assert_eq!((row.status, row.age_seconds, row.stale_after_seconds), ("fresh", Some(15), Some(15)));
        assert_eq!((row.reported_at.as_deref(), row.observed_at.as_deref()), (Some("2026-10-20T09:59:45Z"), Some(NOW)));
        let row = judged(beacon(ago(16), now()), None);
        assert_eq!((row.status, row.age_seconds), ("stale", Some(16)));
    }

    #[test]
    fn clocks_that_differ_make_no_beacon_old_or_young() {
        // The host's clock is an hour behind; the beacon is three seconds old there.
        let row = judged(beacon(ago(3603), ago(3600)), None);
        assert_eq!((row.status, row.age_seconds), ("fresh", Some(3)));
        // An hour ahead, and the beacon a minute old.
        let row = judged(beacon(ago(-3540), ago(-3600)), None);
        assert_eq!((row.status, row.age_seconds), ("stale", Some(60)));
        // Written after the clock was read.
        assert_eq!(judged(beacon(ago(-1), now()), None).age_seconds, Some(0));
    }

    #[test]
    fn a_host_that_does_not_answer_has_the_beacon_that_was_seen_last() {
        let seen = || Some(Seen::Unreachable("down".into()));
        let row = judged(seen(), Some((ago(100), ago(103).to_string())));
        assert_eq!((row.status, row.age_seconds, row.detail.as_deref()), ("unreachable", Some(103), Some("down")));
        assert_eq!(row.observed_at.as_deref(), Some("2026-10-20T09:58:20Z"));
        // One that was dated ahead is at least as old as the look at it.
        assert_eq!(judged(seen(), Some((ago(100), ago(-500).to_string()))).age_seconds, Some(100));
        let row = judged(seen(), None);
        assert_eq!((row.age_seconds, row.observed_at), (None, None));
        assert_eq!(judged(None, None).status, "unreachable");
        assert_eq!(judged(Some(Seen::Unread("no shell".into())), None).status, "unread");
    }

    #[test]
    fn only_machines_with_a_resolver_are_expected_to_have_one() {
        for target in [target("gcp", true), target("local", false)] {
            assert_eq!(judge(&target, None, None, now()).status, "undeclared");
        }
    }

    #[test]
    fn a_file_that_says_nothing_is_neither_a_beacon_nor_the_absence_of_one() {
        let of = |text: &str| {
            let state = serde_json::from_str(text).map(Some).map_err(|e| format!("it is damaged: {e}"));
            Seen::of(Beacon { clock: Some(now().as_second()), file: "/s".into(), state, runs: None })
        };
        for (text, why) in [("{", "it is damaged: "), (r#"{"state":"serving"}"#, "does not say when")] {
            let row = judged(Some(of(text)), Some((ago(100), ago(103).to_string())));
            assert_eq!((row.status, row.beacon.as_deref(), row.age_seconds), ("unread", Some("/s"), Some(103)));
            assert!(row.detail.as_deref().unwrap().starts_with("/s says nothing: ") && !row.read_now, "{row:?}");
            assert!(row.detail.unwrap().contains(why));
        }
        let state = r#"{"state":"serving","updated_at":"2026-10-20T09:59:58.123456+00:00"}"#;
        assert!(matches!(of(state), Seen::Beacon { clock: Some(at), .. } if at == now()));
        let none = Seen::of(Beacon { clock: None, file: "/s".into(), state: Ok(None), runs: None });
        assert_eq!(judged(Some(none), None).status, "absent");
    }

    #[test]
    fn a_beacon_from_the_future_is_not_fresh() {
        let row = judged(beacon(ago(-3600), now()), None);
        assert_eq!((row.status, row.age_seconds), ("stale", None));
        assert_eq!(
            row.detail.as_deref(),
            Some("state serving, dated 3600s ahead of that host's clock: its age is not known")
        );
    }
}
