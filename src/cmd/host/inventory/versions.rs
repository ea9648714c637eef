//! The third axis: what a binary says of itself against its declared version. Pure.
use serde::Serialize;
use std::cmp::Ordering;

/// A binary against `managed_versions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The declared version.
    Matched,
    /// An older one.
    Behind,
    /// A newer one.
    Ahead,
    /// Another one, of which neither can be told.
    Mismatched,
    /// The registry declares none.
    Undeclared,
    /// It is not there, or does not say.
    Unknown,
}

/// The version in what a program prints of itself: the first word that begins with a number and has a dot.
pub(super) fn said(output: &str) -> Option<&str> {
    let word = |word: &&str| numbers(word).is_some_and(|(numbers, _)| numbers.len() > 1);
    let trimmed = output.split_whitespace().map(|word| word.trim_matches(|c: char| matches!(c, ',' | '(' | ')' | ';')));
    trimmed.map(|word| word.strip_prefix('v').unwrap_or(word)).find(word)
}

/// Judges a version.
pub(super) fn judge(declared: Option<&str>, found: Option<&str>) -> Verdict {
    match (declared, found) {
        (_, None) => Verdict::Unknown,
        (None, Some(_)) => Verdict::Undeclared,
        (Some(declared), Some(found)) if declared == found => Verdict::Matched,
        (Some(declared), Some(found)) => match (numbers(declared), numbers(found)) {
            (Some((wanted, _)), Some((has, _))) => match has.cmp(&wanted) {
                Ordering::Less => Verdict::Behind,
                Ordering::Greater => Verdict::Ahead,
                // The same numbers with another tail: a build, a candidate.
                Ordering::Equal => Verdict::Mismatched,
            },
            _ => Verdict::Mismatched,
        },
    }
}

/// `1.2.3-rc1` as its numbers and the rest.
fn numbers(version: &str) -> Option<(Vec<u64>, &str)> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let (core, rest) = version.split_at(end);
    let numbers: Option<Vec<u64>> = core.split('.').map(|part| part.parse().ok()).collect();
    Some((numbers?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let verdict = |declared, found| judge(Some(declared), Some(found));
        assert_eq!(verdict("0.23.66", "0.23.66"), Verdict::Matched);
        assert_eq!(verdict("0.23.66", "0.23.7"), Verdict::Behind);
        assert_eq!(verdict("0.9.9", "0.10.0"), Verdict::Ahead);
        assert_eq!(verdict("1.0.0", "1.0.0-rc1"), Verdict::Mismatched);
        assert_eq!(verdict("nightly", "1.0.0"), Verdict::Mismatched);
        assert_eq!(verdict("1.0.0", "99999999999999999999.0"), Verdict::Mismatched);
        assert_eq!(judge(None, Some("1.0")), Verdict::Undeclared);
        assert_eq!(judge(Some("1.0"), None), Verdict::Unknown);
        assert_eq!(judge(None, None), Verdict::Unknown);
    }

    #[test]
    fn the_version_is_found_in_what_programs_say() {
        assert_eq!(said("stado 0.23.66"), Some("0.23.66"));
        assert_eq!(said("psql (PostgreSQL) 15.6 (Debian 15.6-0+deb12u1)"), Some("15.6"));
        assert_eq!(said("tool version v1.2.3-rc1, built 2026"), Some("1.2.3-rc1"));
        assert_eq!(said("no version here 7"), None);
        assert_eq!(said(""), None);
    }
}
