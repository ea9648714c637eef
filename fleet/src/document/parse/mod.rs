//! One pass from text to the ordered value. It tells what the JSON library keeps to itself: how deep the text nests, which
//! keys an object holds twice, and how each number was written.
//!
//! It accepts what the library accepts and gives the same values, which a property test holds it to; a text that it does not
//! accept, the library is asked to explain.
#[cfg(test)]
mod tests;
mod text;

use super::DocumentError;
use indexmap::IndexSet;
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use text::{Malformed, Text};

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

/// What a text may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Levels of arrays and objects.
    pub(super) depth: usize,
    /// Values of any kind.
    pub(super) values: usize,
}

/// What a text says.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The last of two values holds where a key is there twice.
    pub(super) value: Value,
    /// In the order in which their objects end.
    pub(super) duplicates: Vec<DuplicateKey>,
}

/// Reads a text; refuses one that is over a limit or uses a reserved key.
pub(super) fn parse(text: &str, most: Limits) -> Result<Parsed, DocumentError> {
    let mut parser = Parser { text: Text::new(text), depth: 0, values: 0, most, twice: Vec::new() };
    match parser.document() {
        Ok(value) => Ok(Parsed { value, duplicates: parser.twice.into_iter().map(Twice::located).collect() }),
        Err(Stop::Refused(error)) => Err(error),
        Err(Stop::Malformed) => Err(explain(text, parser.text.at())),
    }
}

fn explain(text: &str, at: usize) -> DocumentError {
    let why = match serde_json::from_str::<Value>(text) {
        Err(error) => error.to_string(),
        Ok(_) => format!("unexpected text at byte {at}"),
    };
    DocumentError(format!("registry document is not valid JSON: {why}"))
}

enum Stop {
    Malformed,
    Refused(DocumentError),
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

enum Step {
    Key(String),
    Index(usize),
}

/// A duplicate whose place is still being said, innermost step first.
struct Twice {
    key: String,
    steps: Vec<Step>,
}

impl Twice {
    fn located(self) -> DuplicateKey {
        let mut location = String::from("registry");
        for step in self.steps.iter().rev() {
            match step {
                Step::Key(key) => location.extend([".", key]),
                Step::Index(index) => location.push_str(&format!("[{index}]")),
            }
        }
        DuplicateKey { location, key: self.key }
    }
}

struct Parser<'t> {
    text: Text<'t>,
    /// Arrays and objects that are open.
    depth: usize,
    values: usize,
    most: Limits,
    twice: Vec<Twice>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Value, Stop> {
        let value = self.value()?;
        self.text.end()?;
        Ok(value)
    }

    fn value(&mut self) -> Result<Value, Stop> {
        self.values += 1;
        if self.values > self.most.values {
            return Err(Stop::Refused(DocumentError(format!(
                "registry document holds more than {} values; no registry needs that",
                self.most.values
            ))));
        }
        Ok(match self.text.next()? {
            b'"' => Value::String(self.text.string()?.into_owned()),
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::array)?,
            b't' => self.text.rest_of("rue").map(|()| Value::Bool(true))?,
            b'f' => self.text.rest_of("alse").map(|()| Value::Bool(false))?,
            b'n' => self.text.rest_of("ull").map(|()| Value::Null)?,
            first => Value::Number(Number::from_string_unchecked(self.text.number(first)?.to_owned())),
        })
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Value, Stop>) -> Result<Value, Stop> {
        if self.depth >= self.most.depth {
            return Err(Stop::Refused(DocumentError(format!(
                "registry document nests deeper than {} levels at byte {}; no registry needs that",
                self.most.depth,
                self.text.at()
            ))));
        }
        self.depth += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Stop> {
        let mut list = Vec::new();
        if self.text.take(b']') {
            return Ok(Value::Array(list));
        }
        loop {
            let found = self.twice.len();
            list.push(self.value()?);
            self.lies_below(found, || Step::Index(list.len().saturating_sub(1)));
            match self.text.next()? {
                b',' => {}
                b']' => return Ok(Value::Array(list)),
                _ => return Err(Stop::Malformed),
            }
        }
    }

    fn object(&mut self) -> Result<Value, Stop> {
        let mut map = Map::new();
        let mut twice = IndexSet::new();
        let mut first = true;
        while !(first && self.text.take(b'}')) {
            first = false;
            let key = self.key()?;
            let found = self.twice.len();
            let value = self.value()?;
            self.lies_below(found, || Step::Key(key.clone()));
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    twice.insert(entry.key().clone());
                    entry.insert(value);
                }
            }
            match self.text.next()? {
                b',' => {}
                b'}' => break,
                _ => return Err(Stop::Malformed),
            }
        }
        self.twice.extend(twice.into_iter().map(|key| Twice { key, steps: Vec::new() }));
        Ok(Value::Object(map))
    }

    fn key(&mut self) -> Result<String, Stop> {
        if self.text.next()? != b'"' {
            return Err(Stop::Malformed);
        }
        let key = self.text.string()?;
        if key.starts_with('$') && RESERVED.contains(&key.as_ref()) {
            return Err(Stop::Refused(DocumentError(format!(
                "registry document uses the reserved key {key:?}; rename it"
            ))));
        }
        let key = Cow::into_owned(key);
        if self.text.next()? != b':' {
            return Err(Stop::Malformed);
        }
        Ok(key)
    }

    /// Duplicates that were found since then lie below one more step.
    fn lies_below(&mut self, found: usize, step: impl Fn() -> Step) {
        for twice in self.twice.iter_mut().skip(found) {
            twice.steps.push(step());
        }
    }
}
