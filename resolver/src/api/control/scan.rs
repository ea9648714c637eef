//! Where the first JSON value of a body ends, and the sentence when it is none. Existing clients show these sentences to
//! people and some compare them, so they are the first daemon's (mesh contract §1.1, §1.4).

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 10_000;

/// Why a body has no first JSON value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScanError {
    /// Nothing but white space.
    Empty,
    /// The body ends inside the value.
    Short,
    /// A character that may not stand where it stands.
    Syntax(String),
}

impl ScanError {
    /// The sentence.
    pub(super) fn text(self) -> String {
        match self {
            Self::Empty => "EOF".into(),
            Self::Short => "unexpected EOF".into(),
            Self::Syntax(text) => text,
        }
    }
}

type Step = Result<(), ScanError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Object,
    Array,
}

/// A reader over bytes that checks syntax and copies nothing.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Skips white space and one value; returns the value's bytes.
    pub(super) fn value(&mut self) -> Result<&'a [u8], ScanError> {
        self.space();
        let start = self.at;
        match self.whole_value() {
            Ok(()) => Ok(self.bytes.get(start..self.at).unwrap_or_default()),
            Err(ScanError::Short) if start >= self.bytes.len() => Err(ScanError::Empty),
            Err(error) => Err(error),
        }
    }

    /// The next byte, if it is `byte`, is skipped.
    pub(super) fn skip(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn whole_value(&mut self) -> Step {
        let mut open: Vec<Inside> = Vec::new();
        loop {
            self.space();
            let opened = match self.peek() {
                Some(b'{') => Some(Inside::Object),
                Some(b'[') => Some(Inside::Array),
                _ => None,
            };
            if let Some(inside) = opened {
                self.at += 1;
                if open.len() >= MAX_DEPTH {
                    return Err(ScanError::Syntax("exceeded max depth".into()));
                }
                open.push(inside);
                if !self.skip(closing(inside)) {
                    self.before_value(inside)?;
                    continue;
                }
                open.pop();
            } else {
                self.scalar()?;
            }
            if !self.after_value(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Closes what ends here; `true` when another value follows.
    fn after_value(&mut self, open: &mut Vec<Inside>) -> Result<bool, ScanError> {
        while let Some(inside) = open.last().copied() {
            if self.skip(b',') {
                self.before_value(inside)?;
                return Ok(true);
            }
            if !self.skip(closing(inside)) {
                return self.wrong(match inside {
                    Inside::Object => "after object key:value pair",
                    Inside::Array => "after array element",
                });
            }
            open.pop();
        }
        Ok(false)
    }

    /// The key of an object's next value.
    fn before_value(&mut self, inside: Inside) -> Step {
        if inside == Inside::Array {
            return Ok(());
        }
        self.space();
        if self.peek() != Some(b'"') {
            return self.wrong("looking for beginning of object key string");
        }
        self.string()?;
        if self.skip(b':') { Ok(()) } else { self.wrong("after object key") }
    }

    fn scalar(&mut self) -> Step {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.wrong("looking for beginning of value"),
        }
    }

    fn literal(&mut self, word: &str) -> Step {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                return self.wrong(&format!("in literal {word} (expecting '{}')", char::from(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Step {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, place: &str) -> Step {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return self.wrong(place);
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    /// A string, from its opening quote to behind its closing one.
    pub(super) fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                _ => return self.wrong("in string literal"),
            }
        }
    }

    fn escape(&mut self) -> Step {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return self.wrong("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => self.wrong("in string escape code"),
        }
    }

    fn wrong<T>(&self, place: &str) -> Result<T, ScanError> {
        match self.peek() {
            None => Err(ScanError::Short),
            Some(byte) => Err(ScanError::Syntax(format!("invalid character {} {place}", shown(byte)))),
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn closing(inside: Inside) -> u8 {
    match inside {
        Inside::Object => b'}',
        Inside::Array => b']',
    }
}

/// A byte in single quotes.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        byte => {
            let quoted = crate::mesh::names::quoted(&char::from(byte).to_string());
            let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"')).unwrap_or_default();
            format!("'{inner}'")
        }
    }
}
