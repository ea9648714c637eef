//! The name in an authority, in the form that routes are entered under (proxy rule 10).

/// Writes the host of `authority` into `host`: lower case, without port, brackets and one trailing dot. The error says what
/// is wrong with it.
pub(in crate::http) fn normalise(authority: &[u8], host: &mut String) -> Result<(), &'static str> {
    host.clear();
    let (name, port) = split(authority)?;
    if !port.iter().all(u8::is_ascii_digit) {
        return Err("the port in the host is not a number");
    }
    if !port.is_empty() && std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok()).is_none() {
        return Err("the port in the host is above 65535");
    }
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() {
        return Err("the host is empty");
    }
    for byte in name {
        if !is_host_byte(*byte) {
            return Err("the host has a character that no host has");
        }
        host.push(char::from(byte.to_ascii_lowercase()));
    }
    Ok(())
}

/// Name and port; the port is empty where there is none.
fn split(authority: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if let Some(literal) = authority.strip_prefix(b"[") {
        let end = literal.iter().position(|byte| *byte == b']').ok_or("a bracket in the host is not closed")?;
        let (name, rest) = literal.split_at_checked(end).unwrap_or_default();
        return match rest.strip_prefix(b"]").unwrap_or_default() {
            [] => Ok((name, b"")),
            [b':', port @ ..] => Ok((name, port)),
            _ => Err("the host goes on after its brackets"),
        };
    }
    match authority.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            let (name, port) = authority.split_at_checked(colon).unwrap_or_default();
            Ok((name, port.get(1..).unwrap_or_default()))
        }
        None => Ok((authority, b"")),
    }
}

/// RFC 3986: unreserved, sub-delims and `%` for names, `:` in literals.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:".contains(&byte)
}
