//! One pass over the text before it is parsed: how deep it nests, which keys an object holds twice, how exponents are written.
//!
//! A parser that builds values cannot tell: it recurses, the last of two equal keys silently wins, and `1E3` becomes `1e+3`.
//! The pass trusts nothing and judges nothing else; text that is not JSON is refused by the parser that runs next.
use super::DocumentError;
use std::borrow::Cow;

/// A key that one object holds twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The object (`registry.targets[0]`).
    pub location: String,
    /// The key.
    pub key: String,
}

/// Names that the JSON library gives a meaning of its own; a document that holds one would not come back as written.
const RESERVED: [&str; 2] = ["$serde_json::private::Number", "$serde_json::private::RawValue"];
/// Objects with at most this many keys are compared pair by pair.
const FEW_KEYS: usize = 8;

/// What the pass found.
pub(super) struct Scan<'t> {
    /// In the order in which their objects end.
    pub(super) duplicates: Vec<DuplicateKey>,
    /// Numbers with an exponent: how many numbers stand before them, and their text.
    pub(super) exponents: Vec<(usize, &'t str)>,
}

enum Frame {
    /// An object whose keys begin at this place of the shared list.
    Object { first_key: usize },
    /// An array, and the element the pass is in.
    Array { index: usize },
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    frames: Vec<Frame>,
    /// Keys of all open objects, outermost first.
    keys: Vec<Cow<'t, str>>,
    expects_key: bool,
    numbers: usize,
    found: Scan<'t>,
}

/// Scans; refuses text that nests deeper than `max_depth` or uses a reserved key.
pub(super) fn scan(text: &str, max_depth: usize) -> Result<Scan<'_>, DocumentError> {
    let found = Scan { duplicates: Vec::new(), exponents: Vec::new() };
    let mut scanner =
        Scanner { text, at: 0, frames: Vec::new(), keys: Vec::new(), expects_key: false, numbers: 0, found };
    while let Some(byte) = text.as_bytes().get(scanner.at) {
        scanner.at += 1;
        match byte {
            b'"' => scanner.string()?,
            b'{' => scanner.open(Frame::Object { first_key: scanner.keys.len() }, max_depth)?,
            b'[' => scanner.open(Frame::Array { index: 0 }, max_depth)?,
            b'}' | b']' => scanner.close(),
            b',' => scanner.comma(),
            b':' => scanner.expects_key = false,
            b'-' | b'0'..=b'9' => scanner.number(),
            _ => {}
        }
    }
    Ok(scanner.found)
}

impl<'t> Scanner<'t> {
    fn open(&mut self, frame: Frame, max_depth: usize) -> Result<(), DocumentError> {
        if self.frames.len() >= max_depth {
            return Err(DocumentError(format!(
                "registry document nests deeper than {max_depth} levels at byte {}; no registry needs that",
                self.at
            )));
        }
        self.expects_key = matches!(frame, Frame::Object { .. });
        self.frames.push(frame);
        Ok(())
    }

    fn comma(&mut self) {
        match self.frames.last_mut() {
            Some(Frame::Object { .. }) => self.expects_key = true,
            Some(Frame::Array { index }) => *index += 1,
            None => {}
        }
    }

    fn close(&mut self) {
        if let Some(Frame::Object { first_key }) = self.frames.pop() {
            let own = self.keys.get(first_key..).unwrap_or_default();
            let twice = repeated(own);
            if !twice.is_empty() {
                let location = self.location(first_key);
                self.found
                    .duplicates
                    .extend(twice.into_iter().map(|key| DuplicateKey { location: location.clone(), key }));
            }
            self.keys.truncate(first_key);
        }
        self.expects_key = false;
    }

    /// Reads a number whose first byte is behind.
    fn number(&mut self) {
        let start = self.at.saturating_sub(1);
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).count();
        let number = self.text.get(start..self.at).unwrap_or_default();
        if number.contains(['e', 'E']) {
            self.found.exponents.push((self.numbers, number));
        }
        self.numbers += 1;
    }

    /// Reads a string whose opening quote is behind; remembers it when it is a key.
    fn string(&mut self) -> Result<(), DocumentError> {
        let start = self.at;
        let mut escaped = false;
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                }
                _ => {}
            }
        }
        if !self.expects_key {
            return Ok(());
        }
        self.expects_key = false;
        let raw = self.text.get(start..self.at.saturating_sub(1)).unwrap_or_default();
        let key = if escaped {
            serde_json::from_str::<String>(&format!("\"{raw}\"")).map_or(Cow::Borrowed(raw), Cow::Owned)
        } else {
            Cow::Borrowed(raw)
        };
        if RESERVED.contains(&key.as_ref()) {
            return Err(DocumentError(format!("registry document uses the reserved key {key:?}; rename it")));
        }
        self.keys.push(key);
        Ok(())
    }

    /// Path of the object that just ended: the frames that are still open, each by the key or element the pass is in.
    fn location(&self, ended_first_key: usize) -> String {
        let mut path = String::from("registry");
        for (depth, frame) in self.frames.iter().enumerate() {
            match frame {
                Frame::Array { index } => path.push_str(&format!("[{index}]")),
                Frame::Object { .. } => {
                    // The current key of an open object is the last one before the next inner object's keys begin.
                    let inner = self.frames.iter().skip(depth + 1).find_map(|f| match f {
                        Frame::Object { first_key } => Some(*first_key),
                        Frame::Array { .. } => None,
                    });
                    let next = inner.unwrap_or(ended_first_key);
                    let key = next.checked_sub(1).and_then(|i| self.keys.get(i));
                    path.push_str(&format!(".{}", key.map_or("", |k| k.as_ref())));
                }
            }
        }
        path
    }
}

/// Each key that occurs again, once, in the order of its second occurrence.
fn repeated(keys: &[Cow<'_, str>]) -> Vec<String> {
    if keys.len() <= FEW_KEYS {
        let seen_before = |i: usize, key: &Cow<'_, str>| keys.iter().take(i).filter(|k| *k == key).count() == 1;
        return keys.iter().enumerate().filter(|(i, k)| seen_before(*i, k)).map(|(_, k)| k.to_string()).collect();
    }
    let mut counts = std::collections::HashMap::with_capacity(keys.len());
    let mut twice = Vec::new();
    for key in keys {
        let count = counts.entry(key.as_ref()).or_insert(0_u32);
        *count += 1;
        if *count == 2 {
            twice.push(key.to_string());
        }
    }
    twice
}
