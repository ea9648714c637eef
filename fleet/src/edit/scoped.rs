//! Is the next document fit to be written? Faults that were there before, in sections that the write leaves as they are,
//! do not hold it back (fleet contract §6.1): else one bad section would lock all others.
use crate::document::Document;
use crate::validate::{Finding, Invalid, validate};

/// Checks `next` against what is `held`. `Ok(Some(line))`: a line for standard error about old faults.
///
/// # Errors
/// The findings that this write causes, or that stand in a section which it changes.
pub fn check_write(held: Option<&Document>, next: &Document) -> Result<Option<String>, Invalid> {
    let Err(invalid) = validate(next.clone()) else { return Ok(None) };
    let Some(held) = held else { return Err(invalid) };
    let before: Vec<Finding> = validate(held.clone()).err().map(|i| i.0).unwrap_or_default();
    let ours = |finding: &Finding| !before.contains(finding) || !unchanged(held, next, finding);
    let (ours, old): (Vec<_>, Vec<_>) = invalid.0.into_iter().partition(ours);
    if !ours.is_empty() {
        return Err(Invalid(ours));
    }
    Ok(Some(format!(
        "[registry] proceeding: this write leaves the invalid section unchanged, and every write that changes it will be \
         refused until it is repaired: {}",
        Invalid(old)
    )))
}

/// Whether the write leaves the section of a finding as it is. A finding without a place is about several.
fn unchanged(held: &Document, next: &Document, finding: &Finding) -> bool {
    match section(&finding.location) {
        Some(key) => held.same_section(next, key),
        None => ["targets", "service_directory", "empty_directory", "placement_profiles"]
            .iter()
            .all(|key| held.same_section(next, key)),
    }
}

/// `service_directory` of `registry.service_directory.services.x`.
fn section(location: &str) -> Option<&str> {
    let rest = location.strip_prefix("registry.")?;
    rest.split(['.', '[']).next().filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Document {
        Document::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_old_fault_elsewhere_is_told_and_does_not_hold_a_write_back() {
        let held = read(r#"{"schema_version":2,"targets":[],"channels":1}"#);
        let next = read(r#"{"schema_version":2,"targets":[],"channels":1,"enrollment":{}}"#);
        let line = check_write(Some(&held), &next).unwrap().unwrap();
        assert_eq!(
            line,
            "[registry] proceeding: this write leaves the invalid section unchanged, and every write that changes it will be \
             refused until it is repaired: registry.channels: must be an object"
        );
        let refused = check_write(None, &next).unwrap_err();
        assert_eq!(refused.to_string(), "registry.channels: must be an object", "a new registry is valid as a whole");
        let repaired = read(r#"{"schema_version":2,"targets":[],"channels":{}}"#);
        assert_eq!(check_write(Some(&held), &repaired), Ok(None));
    }

    #[test]
    fn a_new_fault_and_a_change_inside_a_faulty_section_are_refused() {
        let held = read(r#"{"schema_version":2,"targets":[],"enrollment":{"allow_join":1}}"#);
        let new = read(r#"{"schema_version":2,"targets":[],"enrollment":{"allow_join":1},"channels":1}"#);
        assert_eq!(check_write(Some(&held), &new).unwrap_err().to_string(), "registry.channels: must be an object");
        let inside = read(r#"{"schema_version":2,"targets":[],"enrollment":{"allow_join":1,"allow_adopt":true}}"#);
        assert_eq!(
            check_write(Some(&held), &inside).unwrap_err().to_string(),
            "registry.enrollment.allow_join: must be a boolean"
        );
    }
}
