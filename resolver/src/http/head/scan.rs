//! Where a head ends.
use super::Refused;
use std::ops::Range;

/// How much a head may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Bounds {
    /// Bytes, with the line ends.
    pub bytes: usize,
    /// Fields.
    pub fields: usize,
}

/// Finds the end of one head in bytes that come in pieces. However they are split, the answer is the same.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Scan {
    /// Bytes that were looked at.
    seen: usize,
    /// Where the current line begins.
    line: usize,
    /// Where the first line begins.
    start: usize,
    lines: usize,
}

impl Scan {
    /// `buf`: all bytes since the head may begin, more with every call. Where the head is, once it is whole. Empty lines
    /// before it are skipped, as RFC 9112 §2.2 asks.
    pub(in crate::http) fn next(&mut self, buf: &[u8], bounds: Bounds) -> Result<Option<Range<usize>>, Refused> {
        while let Some(at) = buf.get(self.seen..).and_then(|rest| memchr::memchr(b'\n', rest)) {
            let feed = self.seen + at;
            self.begins_well(buf)?;
            if feed >= bounds.bytes {
                return Err(Refused::TooLarge);
            }
            if feed == self.line || buf.get(feed - 1) != Some(&b'\r') {
                return Err(Refused::Bad("a line ends in a bare line feed"));
            }
            let empty = feed - 1 == self.line;
            (self.seen, self.line) = (feed + 1, feed + 1);
            match (empty, self.lines) {
                (true, 0) => self.start = feed + 1,
                (true, _) => return Ok(Some(self.start..feed + 1)),
                (false, lines) if lines > bounds.fields => return Err(Refused::TooLarge),
                (false, lines) => self.lines = lines + 1,
            }
        }
        self.seen = buf.len();
        self.begins_well(buf)?;
        if buf.len() > bounds.bytes {
            return Err(Refused::TooLarge);
        }
        Ok(None)
    }

    /// Whether the first line begins as a head does: whoever speaks another protocol need not wait for a deadline.
    fn begins_well(&self, buf: &[u8]) -> Result<(), Refused> {
        match buf.get(self.start) {
            Some(byte)
                if self.lines == 0 && !byte.is_ascii_alphanumeric() && !b"\r\n!#$%&'*+-.^_`|~".contains(byte) =>
            {
                Err(Refused::Bad("this is not the beginning of an HTTP request"))
            }
            _ => Ok(()),
        }
    }
}
