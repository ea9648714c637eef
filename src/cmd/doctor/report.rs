//! The report of `stado doctor`: pure.
use crate::ui::{Rows, clean};
use jiff::Timestamp;
use serde::Serialize;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// Nothing to check here.
    Skip,
    /// Worth knowing; fails nothing.
    Warn,
    Fail,
}

/// One check; an id may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) status: Status,
    pub(super) detail: String,
    /// What to do; empty where nothing is to be done.
    pub(super) remedy: String,
}

impl Check {
    fn new(about: (&str, &str), status: Status, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (id, title) = about;
        let detail = clean::line(&detail.into());
        Self { id: id.to_owned(), title: title.to_owned(), status, detail, remedy: clean::line(&remedy.into()) }
    }

    /// As it should be. `about` is the id and the title.
    pub(super) fn ok(about: (&str, &str), detail: impl Into<String>) -> Self {
        Self::new(about, Status::Ok, detail, "")
    }

    /// Not to be checked here.
    pub(super) fn skip(about: (&str, &str), detail: impl Into<String>) -> Self {
        Self::new(about, Status::Skip, detail, "")
    }

    /// Worth knowing.
    pub(super) fn warn(about: (&str, &str), detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(about, Status::Warn, detail, remedy)
    }

    /// Not as it should be.
    pub(super) fn fail(about: (&str, &str), detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(about, Status::Fail, detail, remedy)
    }
}

/// `--json`; field order is the order on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    generated_at: String,
    /// `ok`, `warn` or `fail`.
    status: Status,
    failed: usize,
    warned: usize,
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>, now: Timestamp) -> Self {
        let count = |status| checks.iter().filter(|check| check.status == status).count();
        let (failed, warned) = (count(Status::Fail), count(Status::Warn));
        let status = match (failed, warned) {
            (0, 0) => Status::Ok,
            (0, _) => Status::Warn,
            _ => Status::Fail,
        };
        Self { generated_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), status, failed, warned, checks }
    }

    /// The sentence that fails the command, when a check failed.
    pub(super) fn failure(&self) -> Option<String> {
        let first = self.checks.iter().find(|check| check.status == Status::Fail)?;
        let (failed, all) = (self.failed, self.checks.len());
        let Check { id, title, remedy, .. } = first;
        Some(format!("{failed} of {all} checks FAILED; first blocking failure is {id} ({title}). {remedy}"))
    }

    /// For people.
    pub(super) fn rows(&self, hints: bool) -> Rows {
        let columns: &[&str] =
            if hints { &["check", "status", "detail", "remedy"] } else { &["check", "status", "detail"] };
        self.checks.iter().fold(Rows::new(columns), |rows, check| {
            let status = match check.status {
                Status::Ok => "ok",
                Status::Skip => "skip",
                Status::Warn => "warn",
                Status::Fail => "fail",
            };
            let cells = [check.id.clone(), status.to_owned(), check.detail.clone(), check.remedy.clone()];
            rows.with(cells.into_iter().take(columns.len()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: (&str, &str) = ("registry", "Registry");

    fn report(checks: &[Check]) -> Report {
        Report::new(checks.to_vec(), "2026-10-20T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn the_first_failure_is_named_with_what_to_do() {
        let fail = |id| Check::fail((id, "Placement"), "x", "start it");
        let all =
            report(&[Check::ok(ABOUT, "fine"), Check::warn(ABOUT, "hm", "look"), fail("placement"), fail("later")]);
        assert_eq!(
            all.failure().as_deref(),
            Some("2 of 4 checks FAILED; first blocking failure is placement (Placement). start it")
        );
        let json = serde_json::to_value(&all).unwrap();
        assert_eq!((&json["status"], &json["failed"], &json["warned"]), (&"fail".into(), &2.into(), &1.into()));
        assert_eq!(json["generated_at"], "2026-10-20T10:00:00Z");
        let keys: Vec<_> = json["checks"][2].as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["id", "title", "status", "detail", "remedy"]);
    }

    #[test]
    fn what_is_skipped_or_only_worth_knowing_fails_nothing() {
        let all = report(&[Check::skip(ABOUT, "none"), Check::warn(ABOUT, "hm", "look")]);
        assert_eq!((all.failure(), all.status), (None, Status::Warn));
        assert_eq!(report(&[]).status, Status::Ok);
        assert_eq!(all.rows(false).columns.len(), 3);
        assert_eq!(all.rows(true).rows[1], ["registry", "warn", "hm", "look"]);
    }
}
