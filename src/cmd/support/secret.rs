//! What is a secret: by the name of a key, and by the look of a text. Pure. It rather takes too much: a bundle goes to
//! strangers.
use std::borrow::Cow;

/// Words in a key's name that make its value a secret.
const WORDS: [&str; 14] = [
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "apikey",
    "private",
    "signature",
];
/// Keys ending like this name a place, not a value.
const PLACES: [&str; 7] = ["file", "path", "dir", "env", "bind", "enabled", "seconds"];
/// Keys whose values look like secrets and are none.
const PUBLIC: [&str; 8] = [
    "owner_key",
    "public_key",
    "host_key",
    "store_version",
    "registration_id",
    "producer_id",
    "container_id",
    "docker_container_id",
];

/// A text of letters and digits of this length is a key, a token or a hash.
const LONG: usize = 32;

/// Why the value of a key is not given away; `None` when it may be.
pub(super) fn by_name(key: &str) -> Option<&'static str> {
    let lower = key.to_ascii_lowercase();
    if PUBLIC.contains(&lower.as_str()) {
        return None;
    }
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if words.last().is_some_and(|last| PLACES.contains(last)) {
        return None;
    }
    let secret = words.iter().any(|word| WORDS.contains(word)) || words.last() == Some(&"key");
    secret.then_some("named like a secret")
}

/// Whether the value of such a key is kept as it is found in text.
pub(super) fn is_public(key: &str) -> bool {
    PUBLIC.contains(&key)
}

/// The text without what looks like a secret, and why each was taken.
pub(super) fn by_look(text: &str) -> (Cow<'_, str>, Vec<&'static str>) {
    let mut why = Vec::new();
    let mut out = Cow::Borrowed(text);
    for (take, reason) in RULES {
        if let Some(less) = take(&out) {
            out = Cow::Owned(less);
            why.push(*reason);
        }
    }
    (out, why)
}

type Rule = (fn(&str) -> Option<String>, &'static str);

const RULES: &[Rule] = &[
    (pem, "a PEM block"),
    (userinfo, "the login in a URL"),
    (query, "the query of a URL"),
    (bearer, "an Authorization header"),
    (assigned, "a value named like a secret"),
    (long, "a long key, token or hash"),
];

/// What stands in a secret's place.
pub(super) const REMOVED: &str = "[removed]";

/// The text without PEM blocks; `None` when it has none.
pub(super) fn pem(text: &str) -> Option<String> {
    let begin = text.find("-----BEGIN ")?;
    let from = text.get(begin..)?;
    let end = from
        .find("-----END ")
        .and_then(|at| Some(at + 9 + from.get(at + 9..)?.find("-----")? + 5))
        .unwrap_or(from.len());
    let rest = from.get(end..).unwrap_or_default();
    let rest = pem(rest).unwrap_or_else(|| rest.to_owned());
    Some(format!("{}{REMOVED}{rest}", text.get(..begin)?))
}

/// `scheme://login@`
fn userinfo(text: &str) -> Option<String> {
    replace_words(text, |word| {
        let (scheme, rest) = word.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (login, _) = authority.rsplit_once('@')?;
        // The account of an SSH destination is no secret, and helps.
        if !login.contains(':') {
            return None;
        }
        Some(format!("{scheme}://{REMOVED}{}", rest.get(login.len()..)?))
    })
}

/// What follows the `?` of a path or a URL.
fn query(text: &str) -> Option<String> {
    replace_words(text, |word| {
        let (before, query) = word.split_once('?')?;
        (before.contains('/') && query.contains('=')).then(|| format!("{before}?{REMOVED}"))
    })
}

fn bearer(text: &str) -> Option<String> {
    let mut last = "";
    replace_words(text, |word| {
        let scheme = last;
        last = if matches!(word, "Bearer" | "bearer" | "Basic" | "basic") { "scheme" } else { "" };
        (scheme == "scheme").then(|| REMOVED.to_owned())
    })
}

/// `token=…`, `password: …` in one word.
fn assigned(text: &str) -> Option<String> {
    replace_words(text, |word| {
        let (key, value) = word.split_once(['=', ':'])?;
        let name = key.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let taken = !value.is_empty() && !value.starts_with(REMOVED) && !value.starts_with("//");
        (taken && by_name(name).is_some()).then(|| format!("{key}={REMOVED}"))
    })
}

/// A run of letters and digits that is too long for a name and has both.
fn long(text: &str) -> Option<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '=');
    let mut out = String::with_capacity(text.len());
    let mut taken = false;
    let mut rest = text;
    while !rest.is_empty() {
        let run = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(run);
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        if word.len() >= LONG && digits > 3 && digits < word.len() {
            out.push_str(REMOVED);
            taken = true;
        } else {
            out.push_str(word);
        }
        let other = after.find(inside).unwrap_or(after.len());
        let (between, next) = after.split_at(other);
        out.push_str(between);
        rest = next;
    }
    taken.then_some(out)
}

/// Replaces words between spaces, quotes and commas; `None` when none was.
fn replace_words(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '<' | '>' | '(' | ')');
    let mut out = String::with_capacity(text.len());
    let mut taken = false;
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        match change(word).filter(|_| !word.is_empty()) {
            Some(other) => {
                taken = true;
                out.push_str(&other);
            }
            None => out.push_str(word),
        }
        let (between, next) = after.split_at(after.find(|c| !ends(c)).unwrap_or(after.len()));
        out.push_str(between);
        rest = next;
    }
    taken.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(text: &str) -> String {
        by_look(text).0.into_owned()
    }

    #[test]
    fn a_key_says_what_its_value_is() {
        for secret in ["token", "lease_token", "api-key", "AWS_SECRET_ACCESS_KEY", "password", "key", "Authorization"] {
            assert!(by_name(secret).is_some(), "{secret}");
        }
        for plain in ["owner_key", "token_file", "http_key_file", "name", "keyboard", "store_version", "tokens_dir"] {
            assert!(by_name(plain).is_none(), "{plain}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_look() {
        assert_eq!(look("a\n-----BEGIN KEY-----\nabc\n-----END KEY-----\nb"), "a\n[removed]\nb");
        assert_eq!(look("postgres://ann:pw@db:5432/x"), "postgres://[removed]@db:5432/x");
        assert_eq!(look("GET /x?token=abc HTTP/1.1"), "GET /x?[removed] HTTP/1.1");
        assert_eq!(look("Authorization: Bearer abc.def"), "Authorization: Bearer [removed]");
        assert_eq!(look("msg=x password=hunter2 n=1"), "msg=x password=[removed] n=1");
        let token = "0123456789abcdef".repeat(4);
        assert_eq!(look(&format!("lease {token} of x")), "lease [removed] of x");
    }

    #[test]
    fn what_helps_is_kept() {
        for plain in [
            "ssh://ops@hub:22",
            "http://web.localhost:8088/",
            "the resolver does not serve the orders adapter for consumer shop at 127.0.0.1:15500: it is held by pid 7",
            "2026-12-01T10:00:00.123456+00:00",
            "checkout.a-very-long-service-name-that-somebody-gave-to-it",
        ] {
            assert_eq!(look(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn no_token_survives_wherever_it_stands(before in "[ -~]{0,40}", after in "[ -~]{0,40}", seed in any::<[u8; 32]>()) {
            let token: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assume!(token.bytes().filter(u8::is_ascii_digit).count() > 3 && token.contains(|c: char| c.is_ascii_alphabetic()));
            let text = format!("{before} {token} {after}");
            prop_assert!(!look(&text).contains(&token));
        }

        #[test]
        fn any_text_is_taken(text: String) {
            let _ = look(&text);
        }
    }
}
