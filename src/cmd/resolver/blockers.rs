//! Everything that stands in the way, in words (fleet contract §4.10). Pure.
use super::pulse::{self, Pulse};
use super::verdict::{Adapter, Authority, Facts};
use jiff::Timestamp;
use stado_fleet::ledger::{self, Publisher, ResolverState};

/// Everything that stands in the way, in the contract's order.
pub(super) fn blockers(facts: &Facts, generation: Option<u64>, age: Option<u64>, now: Timestamp) -> Vec<String> {
    let alive = facts.alive();
    let mut all = Vec::new();
    if !facts.is_here {
        let target = facts.target.as_deref().unwrap_or("-");
        all.push(format!(
            "what the resolver of {target} holds is published on {target} only, and this command ran on {}: run `stado \
             resolver status` there",
            facts.here
        ));
    } else if let Publisher::Never { .. } = facts.publisher {
        all.push(ledger::never_sentence(&facts.state_file));
        all.extend(facts.publisher.starting_sentence());
    } else {
        all.extend(facts.publisher.unreadable_sentence());
    }
    all.extend(alive.and_then(not_serving));
    all.extend(alive.and_then(|state| hung(facts, state)));
    all.extend(alive.and_then(|state| ledger::behind_sentence(state, now)));
    all.extend(not_listening(facts, alive));
    all.extend(authority(facts, generation));
    if let (Some(age), Some(policy)) = (age, facts.policy)
        && age > policy.max_stale_seconds
    {
        all.push(format!(
            "the snapshot the resolver holds is {age}s old, past the {}s max-stale window this target declares",
            policy.max_stale_seconds
        ));
    }
    if let Some(age) = facts.registry_staleness_seconds {
        all.push(format!("this answer read a registry copy {age}s old rather than the authority"));
    }
    if let Some(kind) = alive.and_then(|s| s.last_good_refusal.as_deref()) {
        all.push(format!(
            "the resolver is not refreshing this host's last-known-good registry copy ({kind}), so the fallback stays at \
             the generation it last accepted"
        ));
    }
    all.extend(held(facts, now));
    all.extend(alive.into_iter().flat_map(|s| &s.unserved).map(unserved));
    if let (true, Some(dead)) = (facts.is_here, facts.publisher.dead_sentence()) {
        all.push(dead);
        all.extend(facts.publisher.starting_sentence());
    }
    all
}

/// Why no adapter of this host is served at all.
pub(super) fn down(facts: &Facts) -> Option<String> {
    let with = |sentence: String| match facts.publisher.starting_sentence() {
        Some(starting) => format!("{sentence}; {starting}"),
        None => sentence,
    };
    match &facts.publisher {
        Publisher::Never { .. } => Some(with(ledger::never_sentence(&facts.state_file))),
        Publisher::Dead { .. } => facts.publisher.dead_sentence().map(with),
        Publisher::Unreadable { holder: None, .. } => facts.publisher.unreadable_sentence(),
        Publisher::Unreadable { .. } => None,
        Publisher::Alive(state) => hung(facts, state),
    }
}

/// A resolver that runs and does not answer.
fn hung(facts: &Facts, state: &ResolverState) -> Option<String> {
    let Some(Pulse::Silent { stopped }) = facts.pulse else { return None };
    let bind = state.api_bind.as_deref().unwrap_or("-");
    Some(ledger::hung_sentence(state.pid, bind, pulse::LIMIT, stopped))
}

fn not_serving(state: &ResolverState) -> Option<String> {
    if state.state == "serving" {
        return None;
    }
    let mut sentence = format!("the resolver reports state {}", state.state);
    if let Some(reason) = &state.reason {
        sentence.push_str(&format!(": {reason}"));
    }
    if state.attempt > 0 {
        let due = state.next_attempt_at.as_deref().unwrap_or("-");
        sentence.push_str(&format!(" (failed attempt {}, next read due {due})", state.attempt));
    }
    Some(sentence)
}

/// Binds where nobody listens; an adapter that the resolver itself calls unserved is left to that sentence.
fn not_listening(facts: &Facts, alive: Option<&ResolverState>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((bind, Some(false))) = &facts.api {
        all.push(match &facts.api_stranger {
            None => format!("nothing is listening on the resolution API at {bind}"),
            Some(who) => format!(
                "no resolver of this home runs, and the port of the resolution API, {bind}, is held by {who}: a resolver cannot start \
                 before that is stopped, or before this host has another `api_bind`"
            ),
        });
    }
    let named = |adapter: &Adapter| {
        alive.is_some_and(|s| s.unserved.iter().any(|u| u.service == adapter.service && u.consumer == adapter.consumer))
    };
    for adapter in facts.adapters.iter().filter(|a| a.listening == Some(false) && !named(a)) {
        let Adapter { service, consumer, .. } = adapter;
        let bind = adapter.shown_bind();
        all.push(match &adapter.stranger {
            None => format!("nothing is listening on the {service} adapter for consumer {consumer} at {bind}"),
            Some(who) => format!(
                "no resolver of this home runs, and whoever connects to the {service} adapter for consumer {consumer} at {bind} reaches {who}"
            ),
        });
    }
    all
}

fn authority(facts: &Facts, generation: Option<u64>) -> Vec<String> {
    let mut all = Vec::new();
    let Authority { target, reachable, generation: published, detail, .. } = &facts.authority;
    if !reachable {
        let detail = detail.as_deref().map(|d| format!(": {d}")).unwrap_or_default();
        all.push(format!("the registry authority {} is unreachable{detail}", target.as_deref().unwrap_or("-")));
    }
    if let (Some(held), Some(published)) = (generation, published)
        && *reachable
        && held != *published
    {
        all.push(format!(
            "the resolver holds service directory generation {held} and the authority publishes {published}"
        ));
    }
    all
}

fn held(facts: &Facts, now: Timestamp) -> Vec<String> {
    match &facts.waits {
        Err(sentence) => vec![sentence.clone()],
        Ok(_) => ledger::blockers(facts.waits(), now, facts.refresh()),
    }
}

fn unserved(row: &ledger::Unserved) -> String {
    let ledger::Unserved { service, consumer, bind, reason, .. } = row;
    if consumer.is_empty() {
        format!("the resolver does not serve the {service} at {bind}: {reason}")
    } else {
        format!("the resolver does not serve the {service} adapter for consumer {consumer} at {bind}: {reason}")
    }
}
