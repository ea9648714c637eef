//! Sentences for a resolver that runs and says nothing, and for services that answer nothing (additions of Stado). Pure.
use super::{Answers, ResolverState};
use jiff::Timestamp;
use std::time::Duration;

/// A resolver writes its state anew after this long, also when nothing changed.
pub const BEAT: Duration = Duration::from_secs(15);
/// A state that is older was not written when it should have been.
const LATE: Duration = Duration::from_secs(60);

/// A resolver whose sockets the system keeps open while it does not answer. `stopped`: the system says that a signal has
/// stopped it; only a resolver that hangs for another reason is worth ending.
pub fn hung_sentence(pid: u32, bind: &str, waited: Duration, stopped: bool) -> String {
    let next = if stopped {
        format!("it is stopped by a signal, and `kill -CONT {pid}` lets it go on")
    } else {
        format!("it hangs or has no time; if that stays so, `kill -9 {pid}` ends it, and it can be started again")
    };
    format!(
        "the resolver (pid {pid}) is not dead and does not answer: its resolution API at {bind} took a connection and said \
         nothing for {}s, so clients of its adapters are taken and not served; {next}",
        waited.as_secs()
    )
}

/// A resolver that runs and whose files are old: what they say may be over. `None` while they are as young as they should
/// be, or of a build that does not promise to write them.
pub fn behind_sentence(state: &ResolverState, now: Timestamp) -> Option<String> {
    state.version.as_ref()?;
    let written: Timestamp = state.updated_at.parse().ok()?;
    let age = u64::try_from(now.duration_since(written).as_secs()).unwrap_or(0);
    (age > LATE.as_secs()).then(|| {
        format!(
            "what the resolver (pid {}) has published is {age}s old, and it writes it every {}s while it can: the disk is full \
             or does not answer, or the resolver hangs; its waits and routes may be over",
            state.pid,
            BEAT.as_secs()
        )
    })
}

/// A service that has answered none of its requests for longer than `least`; `None` otherwise (§4.8).
pub fn unanswered_sentence(service: &str, answers: &Answers, least: Duration) -> Option<String> {
    let (first, last) = (answers.first_unanswered_at.as_ref()?, answers.last_unanswered_at.as_ref()?);
    let (from, to) = (first.parse::<Timestamp>().ok()?, last.parse::<Timestamp>().ok()?);
    if to.duration_since(from).unsigned_abs() <= least {
        return None;
    }
    let before = match &answers.last_answered_at {
        Some(at) => format!("it last answered at {at}"),
        None => "it has never answered".to_owned(),
    };
    Some(format!(
        "service {service} has taken every request since {first} and answered none, the latest at {last}; {before}: clients \
         give up before it answers"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_resolver_is_told_from_one_that_hangs() {
        let stopped = hung_sentence(7, "127.0.0.1:17600", Duration::from_secs(3), true);
        assert!(stopped.starts_with("the resolver (pid 7) is not dead and does not answer: "), "{stopped}");
        assert!(stopped.ends_with("`kill -CONT 7` lets it go on"), "{stopped}");
        let hung = hung_sentence(7, "127.0.0.1:17600", Duration::from_secs(3), false);
        assert!(hung.contains("`kill -9 7`") && !hung.contains("CONT"), "{hung}");
    }

    #[test]
    fn files_that_are_not_written_any_more_are_behind_and_those_of_older_builds_are_not_known_to_be() {
        let now: Timestamp = "2026-10-20T10:02:00Z".parse().unwrap();
        let mut state = ResolverState { pid: 7, updated_at: "2026-10-20T10:00:30+00:00".into(), ..Default::default() };
        assert_eq!(behind_sentence(&state, now), None);
        state.version = Some("0.1.0".into());
        let said = behind_sentence(&state, now).unwrap();
        assert!(
            said.starts_with("what the resolver (pid 7) has published is 90s old, and it writes it every 15s"),
            "{said}"
        );
        state.updated_at = "2026-10-20T10:01:30+00:00".into();
        assert_eq!(behind_sentence(&state, now), None);
    }

    #[test]
    fn a_service_that_answers_nobody_is_told_however_young_each_wait_was() {
        let mut answers = Answers {
            last_answered_at: Some("2026-10-20T09:00:00+00:00".into()),
            first_unanswered_at: Some("2026-10-20T10:00:00+00:00".into()),
            last_unanswered_at: Some("2026-10-20T10:00:05+00:00".into()),
        };
        let refresh = Duration::from_secs(5);
        assert_eq!(unanswered_sentence("brama", &answers, refresh), None, "one that was given up is no silence");
        answers.last_unanswered_at = Some("2026-10-20T10:00:06+00:00".into());
        assert_eq!(
            unanswered_sentence("brama", &answers, refresh).unwrap(),
            "service brama has taken every request since 2026-10-20T10:00:00+00:00 and answered none, the latest at \
             2026-10-20T10:00:06+00:00; it last answered at 2026-10-20T09:00:00+00:00: clients give up before it answers"
        );
        answers.first_unanswered_at = None;
        assert_eq!(unanswered_sentence("brama", &answers, refresh), None);
    }
}
