//! The words of JSON: blanks, strings, numbers.
use std::borrow::Cow;

/// The text is not JSON at this place.
#[derive(Debug)]
pub(super) struct Malformed;

/// A text, and how far it has been read.
pub(super) struct Text<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Text<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Bytes that are behind.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is not blank.
    pub(super) fn next(&mut self) -> Result<u8, Malformed> {
        self.blanks();
        let byte = self.peek().ok_or(Malformed)?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads `byte`, when it comes next but for blanks.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Nothing but blanks is left.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        self.blanks();
        if self.peek().is_none() { Ok(()) } else { Err(Malformed) }
    }

    /// The rest of a word whose first letter is behind.
    pub(super) fn rest_of(&mut self, word: &str) -> Result<(), Malformed> {
        let there = self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        self.at += word.len();
        if there { Ok(()) } else { Err(Malformed) }
    }

    /// A string whose opening quote is behind.
    pub(super) fn string(&mut self) -> Result<Cow<'t, str>, Malformed> {
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek().ok_or(Malformed)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                0..0x20 => return Err(Malformed),
                _ => self.at += 1,
            }
        }
        let raw = self.text.get(start..self.at).ok_or(Malformed)?;
        self.at += 1;
        if !escaped {
            return Ok(Cow::Borrowed(raw));
        }
        // With its quotes: what an escape means is the library's to say.
        let quoted = self.text.get(start.saturating_sub(1)..self.at).ok_or(Malformed)?;
        serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| Malformed)
    }

    /// A number whose first byte is behind, as it is written.
    pub(super) fn number(&mut self, first: u8) -> Result<&'t str, Malformed> {
        let start = self.at.saturating_sub(1);
        let leading = if first == b'-' { self.digit()? } else { first };
        match leading {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return Err(Malformed),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit()?;
            self.digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digit()?;
            self.digits();
        }
        self.text.get(start..self.at).ok_or(Malformed)
    }

    fn digit(&mut self) -> Result<u8, Malformed> {
        let digit = self.peek().filter(u8::is_ascii_digit).ok_or(Malformed)?;
        self.at += 1;
        Ok(digit)
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}
