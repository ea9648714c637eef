//! What the first bytes of a client say: whether it speaks HTTP, and which request line it sent. Nothing is parsed further.

const METHODS: [&[u8]; 9] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"];
/// A longer first line is not shown.
const LONGEST_LINE: usize = 2048;

/// Whether `bytes` begin as an HTTP/1 request does. A complete first line must also end in an HTTP version, which tells
/// `GET key` of other protocols apart.
pub(super) fn starts_request(bytes: &[u8]) -> bool {
    let Some(space) = bytes.iter().take(8).position(|b| *b == b' ') else {
        // A first packet that ends inside the method.
        return !bytes.is_empty() && METHODS.iter().any(|method| method.starts_with(bytes));
    };
    let known = bytes.get(..space).is_some_and(|word| METHODS.contains(&word));
    known && first_line(bytes).is_none_or(has_version)
}

/// The first line, when it is whole, printable and within [`LONGEST_LINE`] bytes.
pub(super) fn request_line(bytes: &[u8]) -> Option<&str> {
    let line = first_line(bytes).filter(|line| !line.is_empty() && line.len() <= LONGEST_LINE)?;
    let text = std::str::from_utf8(line).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

/// Whether an answer turns the connection into something that is not HTTP any more.
pub(super) fn switches_protocol(answer: &[u8]) -> bool {
    answer.starts_with(b"HTTP/1.1 101") || answer.starts_with(b"HTTP/1.0 101")
}

fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let line = bytes.get(..end)?;
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn has_version(line: &[u8]) -> bool {
    line.rsplit(|b| *b == b' ').next().is_some_and(|word| word.starts_with(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_requests_are_known_by_method_and_version() {
        for yes in [
            "GET / HTTP/1.1\r\n",
            "POST /x HTTP/1.0\n",
            "DELETE /a/very/long/path",
            "GE",
            "OPTIONS * HTTP/1.1\r\nHost: a",
        ] {
            assert!(starts_request(yes.as_bytes()), "{yes:?}");
        }
        for no in [
            "",
            "GET key\r\n",
            "SSH-2.0-x\r\n",
            "get / HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
            "\x16\x03\x01",
            "GETTING / HTTP/1.1\r\n",
        ] {
            assert!(!starts_request(no.as_bytes()), "{no:?}");
        }
    }

    #[test]
    fn only_a_whole_printable_line_is_shown() {
        assert_eq!(request_line(b"GET /v1/models HTTP/1.1\r\nHost: a\r\n"), Some("GET /v1/models HTTP/1.1"));
        assert_eq!(request_line(b"PING\n"), Some("PING"));
        for no in [&b"GET /half"[..], b"\r\n", b"a\x00b\r\n", b"\xff\xfe\r\n", b"a\x1b[31m\r\n"] {
            assert_eq!(request_line(no), None, "{no:?}");
        }
        let long = [vec![b'a'; LONGEST_LINE + 1], b"\r\n".to_vec()].concat();
        assert_eq!(request_line(&long), None);
    }

    #[test]
    fn a_101_switches_and_others_do_not() {
        assert!(switches_protocol(b"HTTP/1.1 101 Switching Protocols\r\n"));
        assert!(!switches_protocol(b"HTTP/1.1 200 OK\r\n"));
    }
}
