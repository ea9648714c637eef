//! What a cut at each step has left, for `placement status`.
use super::{Entry, Step};

/// One sentence on what was done, one on what will be. `entry` is `None` where this host has no record.
pub fn explain(from: &str, to: &str, entry: Option<&Entry>) -> String {
    let Some(entry) = entry else {
        return format!(
            "this host has no record of it, so any step may have been done; `stado placement recover` stops the services on \
             {to}, starts them on {from} and releases the claim"
        );
    };
    if entry.unrecorded {
        return unrecorded(from, to, entry.error.as_deref());
    }
    let done = done(entry.step, from, to);
    match (&entry.error, entry.back || entry.step < Step::RetireSource) {
        (Some(error), _) => format!(
            "it failed ({error}) and its way back was not finished: {done}; `stado placement recover` goes on with the way \
             back, and `--leave-down` ends it also when the services do not come up on {from}"
        ),
        (None, true) => format!("{done}; `stado placement recover` undoes it: the services stay on {from}"),
        (None, false) => {
            format!(
                "{done}; `stado placement recover` finishes it, and goes back to {from} where it cannot (`--undo`: at once)"
            )
        }
    }
}

/// Nobody knows what its steps have done, only what became of the way back.
fn unrecorded(from: &str, to: &str, error: Option<&str>) -> String {
    let failed = error.map_or_else(|| "was cut off".to_owned(), |error| format!("was not finished ({error})"));
    format!(
        "this host has no record of its steps, and its way back {failed}; `stado placement recover` goes on with it: it stops \
         the services on {to}, starts them on {from} and releases the claim (`--leave-down`: also when they do not come up)"
    )
}

fn done(step: Step, from: &str, to: &str) -> String {
    match step {
        Step::Claim => "nothing was done on any host".to_owned(),
        Step::Preflight => format!("{from} and {to} were looked at, and nothing was changed there"),
        Step::StopSource => {
            format!("the services on {from} were told to stop, some or all of them, and would not come up with it")
        }
        Step::CopyState => {
            format!("the services on {from} have stopped; their state was being copied, and is not in place on {to}")
        }
        Step::Routing => {
            format!(
                "the services on {from} have stopped and their state is copied to {to}; units of other hosts were being switched"
            )
        }
        Step::StartDestination => {
            format!(
                "the services on {from} have stopped; on {to} the state was being put in place and the services started"
            )
        }
        Step::RetireSource => {
            format!("the services answered on {to}, and were being enabled there; the state on {from} is as it was")
        }
        Step::Commit => format!("everything is done on the hosts, and the registry does not name {to} yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Claim;

    #[test]
    fn every_step_is_explained_with_what_recover_will_do() {
        let claim = Claim {
            id: "1".into(),
            profile: "gateway".into(),
            from_host: "a".into(),
            to_host: "b".into(),
            started_at: String::new(),
        };
        let mut said = std::collections::BTreeSet::new();
        for step in Step::ALL {
            let entry = Entry { step, ..Entry::new(claim.clone()) };
            let text = explain("a", "b", Some(&entry));
            let verb = if step >= Step::RetireSource { "finishes it" } else { "undoes it" };
            assert!(text.contains(verb), "{text}");
            said.insert(text);
            let failed = Entry { back: true, error: Some("no room".into()), ..entry };
            assert!(explain("a", "b", Some(&failed)).starts_with("it failed (no room)"));
        }
        assert_eq!(said.len(), Step::ALL.len());
        assert!(explain("a", "b", None).contains("no record"));
        let mut entry = Entry::unrecorded(claim);
        let begun = explain("a", "b", Some(&entry));
        assert!(begun.contains("no record of its steps, and its way back was cut off"), "{begun}");
        entry.error = Some("starting on a: no".into());
        let failed = explain("a", "b", Some(&entry));
        assert!(failed.contains("was not finished (starting on a: no)") && failed.contains("--leave-down"), "{failed}");
        assert!(!failed.contains("answered on b"), "no step is made up: {failed}");
    }
}
