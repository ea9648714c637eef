//! What the URLs of stores have in common: `scheme://place/prefix?option=value`.
use std::time::Duration;

/// How long a request may take when nobody says.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// What a timeout may be.
const LIMITS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(300);

/// The parts of a store's URL, each checked for what no part may hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// Between the scheme and the first slash.
    pub(super) place: &'a str,
    /// Without slashes at its ends.
    pub(super) prefix: &'a str,
    /// Options, decoded, in the order in which they stand.
    pub(super) options: Vec<(String, String)>,
}

/// Splits what follows the scheme. `known` are the options that may stand there.
pub(super) fn split<'a>(rest: &'a str, known: &[&str]) -> Result<Parts<'a>, String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, prefix) = path.split_once('/').unwrap_or((path, ""));
    if place.contains('@') {
        return Err(
            "credentials do not belong into it, since it is shown in sentences and lists; see docs/stores.md".into()
        );
    }
    let prefix = prefix.trim_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !prefix.is_empty() && !prefix.split('/').all(|part| part.chars().all(plain) && !matches!(part, "" | "." | ".."))
    {
        return Err(format!("its prefix {prefix:?} may hold letters, digits, '.', '_' and '-' between slashes"));
    }
    let options: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    if let Some((name, _)) = options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(format!("it has no option {name:?}; its options are {}", known.join(", ")));
    }
    Ok(Parts { place, prefix, options })
}

impl Parts<'_> {
    /// The value of an option; the last one counts.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(n, v)| n == name && !v.is_empty()).map(|(_, value)| value.as_str())
    }

    /// `timeout=`: `10s`, `500ms`, or seconds.
    pub(super) fn timeout(&self) -> Result<Duration, String> {
        let Some(text) = self.option("timeout") else { return Ok(TIMEOUT) };
        let (number, unit) = match text.strip_suffix("ms") {
            Some(number) => (number, 1),
            None => (text.strip_suffix('s').unwrap_or(text), 1000),
        };
        let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let timeout = millis.map(Duration::from_millis).filter(|timeout| LIMITS.contains(timeout));
        timeout.ok_or_else(|| format!("its timeout is {text:?}; write it as 10s or 500ms, from 100ms to 300s"))
    }

    /// `plaintext=allow`: the second word for a line that others can read and change.
    pub(super) fn plaintext(&self) -> Result<bool, String> {
        match self.option("plaintext") {
            None => Ok(false),
            Some("allow") => Ok(true),
            Some(other) => Err(format!("its plaintext is {other:?}; the only value is allow")),
        }
    }

    /// `<prefix>/registry.json`.
    pub(super) fn key(&self) -> String {
        let name = super::local::REGISTRY;
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_and_what_it_may_not_hold_is_named() {
        let parts = split("bucket/a/b/?timeout=250ms&region=x", &["timeout", "region"]).unwrap();
        assert_eq!((parts.place, parts.prefix, parts.key().as_str()), ("bucket", "a/b", "a/b/registry.json"));
        assert_eq!(parts.timeout().unwrap(), Duration::from_millis(250));
        assert_eq!(split("bucket", &[]).unwrap().key(), "registry.json");
        assert_eq!(split("bucket/", &[]).unwrap().timeout().unwrap(), TIMEOUT);
        for (bad, why) in [
            ("user:secret@bucket", "credentials do not belong into it"),
            ("bucket/a/../b", "its prefix"),
            ("bucket/a b", "its prefix"),
            ("bucket?colour=red", "no option \"colour\""),
        ] {
            let error = split(bad, &["timeout"]).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{bad}: {error}");
        }
        for bad in ["0s", "5m", "x", "50ms", "301s", "99999999999999999999"] {
            let text = format!("b?timeout={bad}");
            assert!(split(&text, &["timeout"]).unwrap().timeout().unwrap_err().contains("10s"), "{bad}");
        }
        assert!(split("b?plaintext=yes", &["plaintext"]).unwrap().plaintext().is_err());
    }
}
