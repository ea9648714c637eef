//! Texts of a request that become names: service names and hostnames, refused in the contract's words.
use super::error::Refusal;
use crate::http::hostname;
use stado_fleet::name::ServiceName;
use std::fmt::Write as _;

/// Reads a service name (mesh contract §1.4, `invalid_name`).
pub fn service_name(text: &str) -> Result<ServiceName, Refusal> {
    text.parse().map_err(|error: stado_fleet::name::NameError| {
        let pattern = r"^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$";
        Refusal::Name(match text.len() {
            0 | 121.. => error.to_string(),
            _ => format!("service name {} must match {pattern}", quoted(text)),
        })
    })
}

/// Reads `http_host`: trimmed, lower-cased, one trailing dot removed; refused when it is empty, more than a hostname, or ours
/// (proxy rule 21).
pub fn hostname(text: &str) -> Result<String, Refusal> {
    let lower = text.trim().to_lowercase();
    let host = lower.strip_suffix('.').unwrap_or(&lower);
    if host.is_empty() {
        return Err(Refusal::Request("http_host is required for kind=http".into()));
    }
    if host.contains([':', '/', '@']) {
        let shown = quoted(text);
        return Err(Refusal::Request(format!("http_host {shown} must be a hostname without scheme, path, or port")));
    }
    if hostname::is_reserved(host) {
        let shown = quoted(text);
        return Err(Refusal::Request(format!(
            "http_host {shown} is reserved: {} and all names under it are this daemon's own",
            hostname::OWN
        )));
    }
    Ok(host.to_owned())
}

/// A text in double quotes with the escapes that existing clients know from the first daemon's messages.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => push_hex(&mut out, "\\x", 2, c),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => push_hex(&mut out, "\\u", 4, c),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn push_hex(out: &mut String, prefix: &str, width: usize, c: char) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{prefix}{:0width$x}", c as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_names_say_why_in_the_contracts_words() {
        let text = |name: &str| service_name(name).unwrap_err().to_string();
        assert_eq!(text(""), "service name is empty");
        assert_eq!(text(&"a".repeat(121)), "service name exceeds 120 characters");
        assert_eq!(text("A_b"), r#"service name "A_b" must match ^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*$"#);
        assert!(text("a\u{1}").starts_with(r#"service name "a\x01" must"#));
        assert!(service_name("checkout.postgres").is_ok());
        assert!(service_name(&"a".repeat(120)).is_ok());
    }

    #[test]
    fn our_own_hostname_is_given_to_nobody() {
        for ours in ["stado.localhost", "STADO.localhost.", "a.stado.localhost", "*.stado.localhost"] {
            let text = hostname(ours).unwrap_err().to_string();
            assert!(text.contains("is reserved") && text.contains("stado.localhost"), "{text}");
        }
        assert!(hostname("mystado.localhost").is_ok());
    }

    #[test]
    fn hostnames_are_normalised_and_only_hostnames() {
        assert_eq!(hostname(" API.Test. ").unwrap(), "api.test");
        assert_eq!(hostname("a b_c?*").unwrap(), "a b_c?*");
        assert_eq!(hostname("*.Web.Test").unwrap(), "*.web.test");
        for missing in ["", "  ", "."] {
            assert_eq!(hostname(missing).unwrap_err().to_string(), "http_host is required for kind=http");
        }
        assert_eq!(
            hostname("http://a/").unwrap_err().to_string(),
            r#"http_host "http://a/" must be a hostname without scheme, path, or port"#
        );
    }
}
