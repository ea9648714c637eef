//! Why the authority does not answer is behind most of what a host says then: it is said once. Pure.
use crate::cmd::resolver::Report;

/// What has been said already, and is left out from then on.
pub(super) struct Once {
    /// The longest first: what is shorter may be a part of it.
    clauses: Vec<String>,
}

impl Once {
    /// Of the reason why the authority does not answer, as `resolver status` has it.
    pub(super) fn of(detail: Option<&str>) -> Self {
        let cause = detail.and_then(|detail| detail.split(SECOND).next()).unwrap_or_default();
        // `no registry authority SSH connection path answered (primary: …)`: other sentences have the paths alone.
        let paths = cause.find(" (").filter(|_| cause.ends_with(')')).and_then(|at| cause.get(at..));
        let clauses = [Some(format!(": {cause}")).filter(|_| !cause.is_empty()), paths.map(str::to_owned)];
        Self { clauses: clauses.into_iter().flatten().collect() }
    }

    /// Of a fleet whose authority does not answer; nothing is left out elsewhere.
    pub(super) fn of_fleet(fleet: Option<&Report>) -> Self {
        Self::of(fleet.filter(|fleet| !fleet.authority.reachable).and_then(|fleet| fleet.authority.detail.as_deref()))
    }

    /// Each sentence, with every clause where it is met first and nowhere else.
    pub(super) fn said<'s>(&self, sentences: impl Iterator<Item = &'s mut String>) {
        let mut met = vec![false; self.clauses.len()];
        for sentence in sentences {
            // What stays, whatever comes.
            let mut kept = 0;
            for (n, clause) in self.clauses.iter().enumerate() {
                let at = sentence.get(kept..).and_then(|rest| rest.find(clause.as_str())).map(|at| kept + at);
                let Some(at) = at else { continue };
                let is_new = met.get(n) == Some(&false);
                // A longer one has the shorter ones in it.
                met.iter_mut().skip(n).for_each(|met| *met = true);
                let until = if is_new { at + clause.len() } else { at };
                let (head, rest) = sentence.split_at(until);
                *sentence = format!("{head}{}", rest.replace(clause.as_str(), ""));
                kept = if is_new { until } else { kept };
            }
        }
    }

    /// A sentence that comes after those.
    pub(super) fn after(&self, sentence: &str) -> String {
        self.clauses.iter().fold(sentence.to_owned(), |left, clause| left.replace(clause.as_str(), ""))
    }
}

/// Begins what a second attempt said.
const SECOND: &str = "; second authority read on a fresh SSH session failed: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_the_authority_does_not_answer_is_said_once() {
        let paths = "(primary: connect to 10.0.0.1:22: Connection refused (os error 111))";
        let cause = format!("no registry authority SSH connection path answered {paths}");
        let detail = format!("{cause}{SECOND}{cause}");
        let mut all = [
            format!("the resolver reports state backing_off: {detail} (failed attempt 1, next read due soon)"),
            format!("the registry authority tower is unreachable: {detail}"),
            "this answer read a registry copy 7s old rather than the authority".to_owned(),
            format!("the orders adapter has reached nothing: no registry SSH connection path answered {paths}"),
        ];
        Once::of(Some(&detail)).said(all.iter_mut());
        let told = [
            &format!(
                "the resolver reports state backing_off: {cause}; second authority read on a fresh SSH session failed (failed \
                 attempt 1, next read due soon)"
            ),
            "the registry authority tower is unreachable; second authority read on a fresh SSH session failed",
            "this answer read a registry copy 7s old rather than the authority",
            "the orders adapter has reached nothing: no registry SSH connection path answered",
        ];
        assert_eq!(all, told);
        assert_eq!(all.concat().matches("10.0.0.1:22").count(), 1);
        let row = format!("active host \"tower\": no registry SSH connection path answered {paths}");
        let told = "active host \"tower\": no registry SSH connection path answered";
        assert_eq!(Once::of(Some(&detail)).after(&row), told);

        // Without a reason, and with one that nothing else repeats, everything stays.
        let mut one = ["the registry authority tower is unreachable: it is frozen".to_owned()];
        Once::of(Some("it is frozen")).said(one.iter_mut());
        Once::of(None).said(one.iter_mut());
        assert_eq!(one, ["the registry authority tower is unreachable: it is frozen"]);
    }
}
