//! `resolver`: a host that declares one runs it.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::cmd::mute;
use crate::cmd::resolver::{PULSE_LIMIT, Pulse, pulse};
use stado_fleet::authority::Answer;
use stado_fleet::ledger::{self, Publisher, ResolverState, never_sentence};

pub(super) const ABOUT: (&str, &str) = ("resolver", "Resolver");
const CORRECT: &str = "Correct or remove that file; a running resolver writes it anew.";
const START: &str = "Start it with `stado resolver serve`.";

pub(super) async fn check(fleet: &Fleet, answer: Option<&Answer>) -> Check {
    let Some(answer) = answer else { return Check::skip(ABOUT, "the registry could not be read") };
    let registry = &answer.snapshot.valid.registry;
    let me = fleet.me(registry).ok().flatten();
    if me.and_then(|me| registry.targets.get(&me)?.resolver.as_ref()).is_none() {
        return Check::skip(ABOUT, "the registry declares no resolver for this host");
    }
    match fleet.publisher() {
        Err(failure) => Check::fail(ABOUT, failure.message, CORRECT),
        Ok(Publisher::Never { .. }) => Check::fail(ABOUT, never_sentence(&fleet.host.published.state), START),
        Ok(Publisher::Alive(state)) => hung(&state).await.unwrap_or_else(|| alive(&state)),
        Ok(unreadable @ Publisher::Unreadable { .. }) => {
            Check::fail(ABOUT, unreadable.unreadable_sentence().unwrap_or_default(), CORRECT)
        }
        Ok(dead) => Check::fail(ABOUT, dead.dead_sentence().unwrap_or_default(), START),
    }
}

/// One that runs and does nothing: what it has published is what it did before.
async fn hung(state: &ResolverState) -> Option<Check> {
    let bind = state.api_bind.as_deref()?;
    let Pulse::Silent { stopped } = pulse(bind.parse().ok()?, state.pid).await else { return None };
    let sentence = ledger::hung_sentence(state.pid, bind, PULSE_LIMIT, stopped);
    Some(Check::fail(ABOUT, sentence, mute::remedy(state.pid, stopped)))
}

fn alive(state: &ResolverState) -> Check {
    let serving = format!("pid {} is {}", state.pid, state.state);
    let reason = state.reason.as_deref().or_else(|| state.unserved.first().map(|unserved| unserved.reason.as_str()));
    if state.state == "serving" && state.unserved.is_empty() {
        return Check::ok(ABOUT, format!("{serving}, {} adapter(s)", state.adapters.len()));
    }
    let detail = format!("{serving}, {} unserved: {}", state.unserved.len(), reason.unwrap_or("it gives no reason"));
    Check::warn(ABOUT, detail, "`stado resolver status` lists every blocker.")
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;
    use stado_fleet::ledger::Unserved;

    #[test]
    fn a_resolver_that_does_not_serve_everything_is_worth_knowing() {
        let mut state = ResolverState { pid: 7, state: "serving".into(), ..ResolverState::default() };
        assert_eq!(alive(&state).status, Status::Ok);
        state.unserved.push(Unserved { reason: "port taken".into(), ..Unserved::default() });
        let check = alive(&state);
        assert_eq!((check.status, check.detail.as_str()), (Status::Warn, "pid 7 is serving, 1 unserved: port taken"));
        state = ResolverState { state: "backing_off".into(), reason: Some("why".into()), ..ResolverState::default() };
        assert_eq!(alive(&state).detail, "pid 0 is backing_off, 0 unserved: why");
    }
}
