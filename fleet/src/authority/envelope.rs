//! The authority's answers on standard output: a line of JSON, perhaps behind a login script's chatter. Pure.
use serde::Deserialize;
use serde_json::value::RawValue;

/// Chatter past this is not chatter.
const CHATTER: usize = 64 << 10;
/// How much of it is quoted.
const QUOTED: usize = 80;

/// `{"store_version":…,"document":…}` (§3.2), or `{"store_version":…,"unchanged":true}` to who asked for something newer.
/// Unknown keys are refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Envelope<'a> {
    pub(super) store_version: crate::name::StoreVersion,
    #[serde(borrow, default)]
    pub(super) document: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) unchanged: bool,
}

/// An answer, and what came before it.
#[derive(Debug)]
pub(super) struct Heard<'a, T> {
    pub(super) answer: T,
    chatter: &'a [u8],
}

impl<T> Heard<'_, T> {
    /// The warning about what was skipped, if anything was.
    pub(super) fn warning(&self, who: &str) -> Option<String> {
        if self.chatter.trim_ascii().is_empty() {
            return None;
        }
        Some(format!(
            "{who} printed {} bytes before its answer, which were skipped: {}; a login script there writes to standard output",
            self.chatter.len(),
            quote(self.chatter)
        ))
    }
}

/// Finds the answer: the first line, within 64 KiB, from which the rest reads as one `T`. The error is that of the last
/// line that could have been one.
pub(super) fn find<'a, T: Deserialize<'a>>(stdout: &'a [u8]) -> Result<Heard<'a, T>, String> {
    let mut error = None;
    for start in line_starts(stdout) {
        let (chatter, rest) = stdout.split_at(start);
        if !rest.starts_with(b"{") {
            continue;
        }
        match serde_json::from_slice(rest) {
            Ok(answer) => return Ok(Heard { answer, chatter }),
            Err(e) => error = Some(e.to_string()),
        }
    }
    Err(error.unwrap_or_else(|| format!("no JSON object in {} bytes beginning {}", stdout.len(), quote(stdout))))
}

/// Offsets of line beginnings within the chatter limit.
fn line_starts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let newlines = bytes.iter().take(CHATTER).enumerate().filter(|(_, b)| **b == b'\n');
    std::iter::once(0).chain(newlines.map(|(at, _)| at + 1))
}

fn quote(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes.get(..QUOTED).unwrap_or(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANSWER: &str = r#"{"store_version":"9450","document":{"schema_version":2,"targets":[]}}"#;

    fn version(stdout: &str) -> Result<String, String> {
        find::<Envelope<'_>>(stdout.as_bytes()).map(|h| h.answer.store_version.to_string())
    }

    #[test]
    fn an_answer_is_read_behind_chatter_and_the_chatter_is_quoted() {
        assert_eq!(version(&format!("{ANSWER}\n")).unwrap(), "9450");
        let chatty = format!("Welcome to control-host\n{{ not json\n{ANSWER}\n");
        let heard = find::<Envelope<'_>>(chatty.as_bytes()).unwrap();
        assert_eq!(
            heard.warning("the registry authority").unwrap(),
            "the registry authority printed 35 bytes before its answer, which were skipped: \"Welcome to \
             control-host\\n{ not json\\n\"; a login script there writes to standard output"
        );
        assert_eq!(heard.answer.document.unwrap().get(), r#"{"schema_version":2,"targets":[]}"#);
        assert!(find::<Envelope<'_>>(ANSWER.as_bytes()).unwrap().warning("x").is_none());
    }

    #[test]
    fn what_is_not_an_answer_is_refused_with_its_cause() {
        assert!(
            version(&ANSWER.replace("\"document\"", "\"more\":1,\"document\""))
                .unwrap_err()
                .contains("unknown field `more`")
        );
        assert!(version(&ANSWER[..40]).unwrap_err().contains("EOF"));
        assert!(version("").unwrap_err().contains("no JSON object in 0 bytes"));
        assert!(version(&format!("{ANSWER}\nbye")).unwrap_err().contains("trailing"));
        assert!(version(r#"{"store_version":"","document":{}}"#).unwrap_err().contains("store version is empty"));
    }

    #[test]
    fn chatter_without_end_is_refused() {
        let line = "x".repeat(1023);
        let within = format!("{}{ANSWER}", format!("{line}\n").repeat(64));
        assert_eq!(version(&within).unwrap(), "9450");
        let beyond = format!("{}{ANSWER}", format!("{line}\n").repeat(65));
        assert!(version(&beyond).unwrap_err().starts_with("no JSON object in"));
    }

    proptest! {
        #[test]
        fn any_chatter_is_skipped_and_no_truncation_is_an_answer(chatter in "([a-z {}\"]{0,40}\n){0,5}", cut in 0usize..ANSWER.len()) {
            let whole = format!("{chatter}{ANSWER}");
            prop_assert_eq!(version(&whole).unwrap(), "9450");
            let truncated = format!("{chatter}{}", &ANSWER[..cut]);
            prop_assert!(version(&truncated).is_err());
        }
    }
}
