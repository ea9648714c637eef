//! History of answers across restarts.
use crate::conn::ledger::Ledger;
use stado_fleet::disk;
use stado_fleet::ledger::{Answers, AnswersFile, PublishedPaths};

/// Far above 10,000 rows.
const LARGEST: u64 = 64 << 20;

/// Takes up what an earlier process published. A row that this build cannot read is left out; a file that is no object is
/// set aside. Neither stops a resolver.
pub(super) fn restore(paths: &PublishedPaths, ledger: &Ledger) {
    let path = &paths.answers;
    match disk::read(path, LARGEST) {
        Ok(None) => {}
        Ok(Some(bytes)) => match rows(&bytes) {
            Ok(file) => ledger.restore_answers(&file),
            Err(error) => set_aside(paths, &error.to_string()),
        },
        Err(error) => tracing::warn!(target: "stado::fleet", "the history of answers starts anew: {error}"),
    }
}

fn rows(bytes: &[u8]) -> Result<AnswersFile, serde_json::Error> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(bytes)?;
    let read = |(service, row)| Some((service, serde_json::from_value::<Answers>(row).ok()?));
    Ok(object.into_iter().filter_map(read).collect())
}

fn set_aside(paths: &PublishedPaths, why: &str) {
    let path = paths.answers.display();
    match disk::set_aside(&paths.answers) {
        Ok(copy) => {
            let copy = copy.display();
            tracing::warn!(target: "stado::fleet", "the history of answers starts anew: {path} cannot be read ({why}) and was set aside as {copy}");
        }
        Err(error) => {
            tracing::warn!(target: "stado::fleet", "the history of answers starts anew: {path} cannot be read ({why}) and could not be set aside: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_another_build_costs_that_row_only() {
        let file =
            rows(br#"{"a":{"last_answered_at":"2026-10-20T09:00:00+00:00","new":1},"b":7,"c":{"last_answered_at":5}}"#);
        assert_eq!(file.unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
        assert!(rows(b"[]").is_err() && rows(b"{").is_err());
    }
}
