//! The host field of a known_hosts line: names with wildcards and negation, or one hashed name.
use base64::Engine;
use hmac::{Hmac, Mac};
use sha1::Sha1;

const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::STANDARD;

/// Which hosts a line is for.
#[derive(Debug)]
pub(super) enum Hosts {
    /// Comma-separated patterns, lowercase.
    Patterns(Vec<String>),
    /// `|1|salt|hash`: HMAC-SHA1 of the name under the salt.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

impl Hosts {
    pub(super) fn parse(field: &str) -> Result<Self, &'static str> {
        let Some(hashed) = field.strip_prefix('|') else {
            return Ok(Self::Patterns(field.to_ascii_lowercase().split(',').map(str::to_owned).collect()));
        };
        let rest = hashed.strip_prefix("1|").ok_or("unknown kind of hashed name")?;
        let (salt, hash) = rest.split_once('|').ok_or("malformed hashed name")?;
        let decode = |text| BASE64.decode(text).map_err(|_| "malformed hashed name");
        Ok(Self::Hashed { salt: decode(salt)?, hash: decode(hash)? })
    }

    /// Whether the line is for `name` (lowercase): some pattern matches and no negated one does.
    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Hashed { salt, hash } => {
                let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else { return false };
                mac.update(name.as_bytes());
                mac.verify_slice(hash).is_ok()
            }
            Self::Patterns(patterns) => {
                let negated = |p: &String| p.strip_prefix('!').is_some_and(|p| glob(p, name));
                patterns.iter().any(|p| glob(p, name)) && !patterns.iter().any(negated)
            }
        }
    }
}

/// `*` for any run and `?` for any one character; everything else is itself, brackets included.
pub(in crate::link) fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || Some(c) == name.get(n) => {
                p += 1;
                n += 1;
            }
            // Give the last star one more character and try again.
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, without cleverness.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|n| slow(rest, &name[n..])),
            Some((b'?', rest)) => !name.is_empty() && slow(rest, &name[1..]),
            Some((c, rest)) => name.first() == Some(c) && slow(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn wildcards_match_as_defined(pattern in "[ab*?.]{0,8}", name in "[ab.]{0,10}") {
            prop_assert_eq!(glob(&pattern, &name), slow(pattern.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn negation_wins_whatever_its_place() {
        for field in ["*.lan,!bad.lan", "!bad.lan,*.LAN"] {
            let hosts = Hosts::parse(field).unwrap();
            assert!(hosts.matches("good.lan") && !hosts.matches("bad.lan") && !hosts.matches("lan"));
        }
        assert!(!Hosts::parse("!bad.lan").unwrap().matches("good.lan"));
    }
}
