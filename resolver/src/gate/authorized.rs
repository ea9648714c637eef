//! One line of the gate's authorized_keys: a key and what limits it. Every key is as if marked `restrict`: what remains
//! is the verbs and the endpoints of the directory.
use russh::keys::ssh_key::Algorithm;
use russh::keys::ssh_key::public::KeyData;
use std::net::SocketAddr;

/// A key that may come in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Authorized {
    pub(super) key: KeyData,
    pub(super) limits: Limits,
}

/// What the options of a line leave to its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// No longer from this second since 1970 on.
    pub(super) expires: Option<i64>,
    /// Endpoints it may open, when limited (`permitopen=`); none at all with `no-port-forwarding`.
    pub(super) endpoints: Option<Vec<SocketAddr>>,
}

/// Parses a line; `None` for blanks and comments. An option that the gate cannot honour refuses the line: a limit that
/// someone wrote must not be lost.
pub(super) fn parse(line: &str) -> Result<Option<Authorized>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (first, rest) = field(line);
    let mut limits = Limits::default();
    let (kind, rest) = if first.parse::<Algorithm>().is_ok_and(|a| !matches!(a, Algorithm::Other(_))) {
        (first, rest)
    } else {
        for option in options(first) {
            limits.apply(option)?;
        }
        field(rest)
    };
    let (blob, _comment) = field(rest);
    let key = russh::keys::parse_public_key_base64(blob).map_err(|_| "holds no readable key".to_owned())?;
    if key.algorithm().as_str() != kind {
        return Err("holds a key that is not of the type it says".into());
    }
    Ok(Some(Authorized { key: key.key_data().clone(), limits }))
}

/// The text up to the first blank outside double quotes, and what follows it.
fn field(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    });
    let (field, rest) = text.split_at(end.unwrap_or(text.len()));
    (field, rest.trim_start())
}

/// Splits at commas outside double quotes.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c: char| {
        quoted ^= c == '"';
        !quoted && c == ','
    })
}

impl Limits {
    fn apply(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value.trim_matches('"')),
            None => (option, ""),
        };
        match name.to_ascii_lowercase().as_str() {
            // What the gate never gives anyway.
            "restrict" | "no-pty" | "no-x11-forwarding" | "no-agent-forwarding" | "no-user-rc" | "port-forwarding" => {
                Ok(())
            }
            "no-port-forwarding" => {
                self.endpoints = Some(Vec::new());
                Ok(())
            }
            "permitopen" => {
                let value = value.replace("localhost:", "127.0.0.1:");
                let endpoint =
                    value.parse().map_err(|_| format!("has permitopen={value:?}, which is no loopback ip:port"))?;
                self.endpoints.get_or_insert_default().push(endpoint);
                Ok(())
            }
            "expiry-time" => {
                self.expires = Some(expiry(value).ok_or_else(|| format!("has the unreadable expiry-time={value:?}"))?);
                Ok(())
            }
            other => Err(format!("has the option {other:?}, which this gate cannot honour")),
        }
    }
}

/// `YYYYMMDD[HHMM[SS]][Z]`: in this host's zone without `Z`, as sshd reads it.
fn expiry(text: &str) -> Option<i64> {
    let (digits, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, jiff::tz::TimeZone::UTC),
        None => (text, jiff::tz::TimeZone::system()),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) || !matches!(digits.len(), 8 | 12 | 14) {
        return None;
    }
    let part = |at: usize, len: usize| digits.get(at..at + len).map_or(Some(0), |t| t.parse::<i8>().ok());
    let year = digits.get(..4)?.parse().ok()?;
    let date = jiff::civil::DateTime::new(year, part(4, 2)?, part(6, 2)?, part(8, 2)?, part(10, 2)?, part(12, 2)?, 0);
    Some(date.ok()?.to_zoned(zone).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn keys_with_and_without_options_are_read() {
        assert_eq!(parse("  # a comment").unwrap(), None);
        assert_eq!(parse("").unwrap(), None);
        let plain = parse(&format!("{KEY} me@laptop with words")).unwrap().unwrap();
        assert_eq!(plain.limits, Limits::default());
        let limited = r#"restrict,permitopen="127.0.0.1:5432",permitopen="localhost:80",expiry-time="20300102Z""#;
        let limited = parse(&format!("{limited} {KEY}")).unwrap().unwrap();
        assert_eq!(limited.key, plain.key);
        assert_eq!(
            limited.limits.endpoints.unwrap(),
            ["127.0.0.1:5432".parse().unwrap(), "127.0.0.1:80".parse().unwrap()]
        );
        assert_eq!(limited.limits.expires, Some(1_893_542_400));
        assert_eq!(parse(&format!("no-port-forwarding {KEY}")).unwrap().unwrap().limits.endpoints, Some(vec![]));
    }

    #[test]
    fn a_limit_that_cannot_be_honoured_refuses_the_line() {
        for options in [r#"command="echo a, b""#, "cert-authority", r#"from="10.0.0.*""#, "tunnel=\"1\"", "surprise"] {
            let why = parse(&format!("{options} {KEY}")).unwrap_err();
            assert!(why.contains("cannot honour"), "{options}: {why}");
        }
        assert!(parse(&format!("expiry-time=\"soon\" {KEY}")).unwrap_err().contains("expiry-time"));
        assert!(parse("ssh-ed25519 nonsense").is_err());
        assert!(parse(&format!("ssh-rsa {}", KEY.split(' ').nth(1).unwrap())).is_err());
    }

    #[test]
    fn expiry_times_are_read_to_the_second() {
        assert_eq!(expiry("19700102Z"), Some(86_400));
        assert_eq!(expiry("197001010001Z"), Some(60));
        assert_eq!(expiry("19700101000102Z"), Some(62));
        for bad in ["", "1970", "19701301Z", "1970010100Z", "x9700101Z"] {
            assert_eq!(expiry(bad), None, "{bad}");
        }
    }
}
