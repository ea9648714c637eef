//! How long a message's body is, read so that no two readers can disagree (proxy rule 13).
use super::field::words;

/// What the framing fields of one head say, field by field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
}

impl Lengths {
    /// A `Content-Length` field. A list of equal numbers is one number (RFC 9110 §8.6).
    pub(super) fn content_length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let mut any = false;
        for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            any = true;
            let number = number(word).ok_or("Content-Length is not a number of bytes")?;
            if self.length.replace(number).is_some_and(|before| before != number) {
                return Err("two different lengths in Content-Length");
            }
        }
        if any { Ok(()) } else { Err("Content-Length is empty") }
    }

    /// A `Transfer-Encoding` field: `chunked`, once, and nothing else.
    pub(super) fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let mut codings = words(value);
        let known = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
        if !known || codings.next().is_some() || std::mem::replace(&mut self.chunked, true) {
            return Err("a transfer coding other than chunked");
        }
        Ok(())
    }

    /// Both at once is how requests are smuggled.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.chunked && self.length.is_some() {
            return Err("Content-Length together with Transfer-Encoding");
        }
        Ok(())
    }
}

/// Digits and nothing else.
fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}
