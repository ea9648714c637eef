//! What a host's word of its registry is worth beside the registry that is stored: pure.
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use stado_fleet::authority::Holding;
use stado_fleet::document::Target;
use stado_fleet::ledger::RefusedRegistry;

/// A host that keeps a watch says again each minute what it holds: after this long it keeps none.
pub(super) const FRESH: u64 = 180;
/// The store version of a registry that was not read from its authority (fleet contract §4.1).
const COPY: &str = "last-known-good";

/// The registry that is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stored {
    pub(super) target: Option<String>,
    pub(super) generation: Option<u64>,
    pub(super) store_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<u64>,
}

/// What is known of a host.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) holding: Holding,
    /// `here`, `told`, `asked`.
    pub(super) how: &'static str,
    /// How old it is.
    pub(super) age: u64,
    /// The watch has ended over which it was told.
    pub(super) gone: bool,
}

/// One host of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) host: String,
    /// `current`, `behind`, `ahead`, `copy`, `refuses`, `nothing`, `silent`, `unknown`, `undeclared`.
    pub(super) status: &'static str,
    pub(super) generation: Option<u64>,
    pub(super) store_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<u64>,
    /// What it does; null of a silent host, which may do anything.
    pub(super) state: Option<String>,
    /// Of a silent host: what it said that it does, the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_state: Option<String>,
    /// Of a silent host: since when nothing was heard, by this host's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) silent_since: Option<String>,
    pub(super) refused: Option<RefusedRegistry>,
    /// How it is known: `here`, `told` by the host, `asked` of it.
    pub(super) heard: Option<&'static str>,
    pub(super) age_seconds: Option<u64>,
    pub(super) detail: Option<String>,
}

/// Judges one host. `why`: what kept its word of now from being heard, when that is so.
pub(super) fn judge(target: &Target, word: Option<Word>, why: Option<String>, stored: &Stored, now: Timestamp) -> Row {
    let status = match (&word, &why) {
        _ if !super::super::beacons::expected(target) => "undeclared",
        (None, _) => "unknown",
        (Some(_), Some(_)) => "silent",
        (Some(word), None) => standing(&word.holding, stored),
    };
    let (how, age) = (word.as_ref().map(|word| word.how), word.as_ref().map(|word| word.age));
    let holding = word.map(|word| word.holding).unwrap_or_default();
    let said = Some(holding.state).filter(|state| !state.is_empty());
    let is_silent = status == "silent";
    let since = age.filter(|_| is_silent).map(|age| now - SignedDuration::from_secs(i64::try_from(age).unwrap_or(0)));
    Row {
        host: target.name.to_string(),
        status,
        generation: holding.generation,
        store_version: holding.store_version,
        epoch: holding.epoch,
        state: said.clone().filter(|_| !is_silent),
        last_state: said.filter(|_| is_silent),
        silent_since: since.map(|since| since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        refused: holding.refused,
        heard: how,
        age_seconds: age,
        detail: why.filter(|_| status != "undeclared"),
    }
}

fn standing(holding: &Holding, stored: &Stored) -> &'static str {
    let version = holding.store_version.as_deref();
    if holding.refused.is_some() {
        "refuses"
    } else if version == Some(stored.store_version.as_str()) {
        "current"
    } else if version.is_none() {
        "nothing"
    } else if version == Some(COPY) {
        "copy"
    } else if (holding.epoch, holding.generation) > (stored.epoch, stored.generation) {
        "ahead"
    } else {
        "behind"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::document::ResolverPolicy;

    fn target(resolver: bool) -> Target {
        let policy = ResolverPolicy {
            api_bind: "127.0.0.1:17600".parse().unwrap(),
            refresh_seconds: 5,
            max_stale_seconds: 15,
            adapters: Vec::new(),
        };
        Target {
            name: "desk".parse().unwrap(),
            kind: "local".into(),
            paths: Vec::new(),
            hostnames: Vec::new(),
            stado_command: None,
            host_keys: Vec::new(),
            resolver_keys: Vec::new(),
            resolver: resolver.then_some(policy),
        }
    }

    fn now() -> Timestamp {
        "2026-11-30T20:00:09Z".parse().unwrap()
    }

    fn stored() -> Stored {
        Stored { target: Some("control".into()), generation: Some(7), store_version: "v7".into(), epoch: Some(1) }
    }

    fn word(generation: u64, version: &str, epoch: Option<u64>) -> Word {
        let holding = Holding {
            target: "desk".into(),
            state: "serving".into(),
            generation: Some(generation),
            store_version: Some(version.into()),
            epoch,
            refused: None,
        };
        Word { holding, how: "told", age: 9, gone: false }
    }

    fn status(word: Option<Word>) -> &'static str {
        judge(&target(true), word, None, &stored(), now()).status
    }

    #[test]
    fn a_host_is_placed_by_what_it_holds_beside_what_is_stored() {
        assert_eq!(status(Some(word(7, "v7", Some(1)))), "current");
        assert_eq!(status(Some(word(6, "v6", Some(1)))), "behind");
        assert_eq!(status(Some(word(7, "v7a", Some(1)))), "behind", "the same directory in another document");
        assert_eq!(status(Some(word(8, "v8", Some(1)))), "ahead");
        assert_eq!(status(Some(word(90, "v90", None))), "behind", "of an authority that was replaced");
        assert_eq!(status(Some(word(7, "last-known-good", Some(1)))), "copy");
        let nothing = Word { holding: Holding::default(), how: "asked", age: 0, gone: false };
        assert_eq!(status(Some(nothing)), "nothing");
        assert_eq!(status(None), "unknown");
        assert_eq!(judge(&target(false), None, Some("why".into()), &stored(), now()).status, "undeclared");
    }

    #[test]
    fn a_refusal_is_shown_whatever_is_held_and_a_silent_host_with_its_last_word() {
        let mut refusing = word(7, "v7", Some(1));
        refusing.holding.refused = Some(RefusedRegistry { generation: Some(5), ..RefusedRegistry::default() });
        let row = judge(&target(true), Some(refusing.clone()), None, &stored(), now());
        assert_eq!((row.status, row.refused.unwrap().generation), ("refuses", Some(5)));
        let row = judge(&target(true), Some(refusing), Some("no path answered".into()), &stored(), now());
        assert_eq!((row.status, row.generation, row.age_seconds), ("silent", Some(7), Some(9)));
        assert_eq!(row.detail.as_deref(), Some("no path answered"));
        // Nobody knows what it does now.
        assert_eq!((row.state, row.last_state.as_deref()), (None, Some("serving")));
        assert_eq!(row.silent_since.as_deref(), Some("2026-11-30T20:00:00Z"));
    }
}
