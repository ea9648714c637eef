//! `queue-control`: every active coordinator has a host that runs it.
use super::report::Check;
use crate::cmd::registry::unplaced_coordinators;
use serde_json::Value;
use stado_fleet::authority::Answer;
use stado_fleet::document::Document;

pub(super) const ABOUT: (&str, &str) = ("queue-control", "Queue control");

pub(super) fn checks(answer: Option<&Answer>) -> Vec<Check> {
    match answer {
        None => vec![Check::skip(ABOUT, "the registry could not be read")],
        Some(answer) => of_document(&answer.snapshot.valid.document),
    }
}

fn of_document(document: &Document) -> Vec<Check> {
    let all = document.section("coordinators").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let active = all.iter().filter(|one| one.get("active").and_then(Value::as_bool) != Some(false)).count();
    let unplaced = unplaced_coordinators(document);
    if !unplaced.is_empty() {
        return unplaced.into_iter().map(|(detail, remedy)| Check::fail(ABOUT, detail, remedy)).collect();
    }
    if active == 0 {
        return vec![Check::skip(ABOUT, "the registry declares no active coordinator")];
    }
    let queue = document.section("fleet_queue_namespace").and_then(Value::as_str).unwrap_or("none");
    vec![Check::ok(ABOUT, format!("{active} active coordinator(s) have a host; queue namespace {queue}"))]
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;
    use serde_json::json;

    fn status(coordinator: &Value) -> Vec<Status> {
        let document = Document::from_value(json!({"targets": [{"name": "a"}], "coordinators": [coordinator]}));
        of_document(&document).into_iter().map(|check| check.status).collect()
    }

    #[test]
    fn an_active_coordinator_needs_a_host() {
        assert_eq!(status(&json!({"name": "main", "host": "a", "active": true})), [Status::Ok]);
        assert_eq!(status(&json!({"name": "main", "host": "gone", "active": true})), [Status::Fail]);
        assert_eq!(status(&json!({"name": "main", "host": "gone", "active": false})), [Status::Skip]);
    }
}
