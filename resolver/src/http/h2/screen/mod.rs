//! What the engine lets pass: pseudo fields among a request's trailers. They make it malformed (RFC 9113 §8.1), and the engine
//! drops them without a word, so the frames of a client are looked at on their way to it.
mod fields;
mod huffman;
#[cfg(test)]
mod tests;

use fields::Fields;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

const PREFACE: usize = 24;
const HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 32;
/// A larger block ends the connection in the engine.
const LARGEST: usize = 16 << 20;
/// So many streams are remembered until somebody asks for them; nobody sends more by mistake.
const MOST: usize = 1024;

/// Streams whose trailers have pseudo fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Malformed(Arc<Mutex<HashSet<u32>>>);

impl Malformed {
    /// Whether the trailers of `stream` have; asked once, when they are there.
    pub(super) fn take(&self, stream: u32) -> bool {
        self.all().remove(&stream)
    }
    fn enter(&self, stream: u32) {
        let mut all = self.all();
        if all.len() < MOST {
            all.insert(stream);
        }
    }
    fn all(&self) -> std::sync::MutexGuard<'_, HashSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The frames of one client, in whatever pieces they come.
#[derive(Debug)]
pub(super) struct Screen {
    at: At,
    /// The head or the payload of the frame that is being read, as far as it is of interest.
    held: Vec<u8>,
    /// Of the fields that are being collected.
    block: Vec<u8>,
    stream: u32,
    newest: u32,
    fields: Fields,
    malformed: Malformed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Of no interest: so many bytes.
    Skip(usize),
    Head,
    /// Fields: so many bytes are still to come, and the frame's kind and flags.
    Payload(usize, u8, u8),
    /// What came is no HTTP/2, as the engine will say.
    Lost,
}

impl Screen {
    /// From the first byte of a connection.
    pub(super) fn new(malformed: Malformed) -> Self {
        let (held, block) = (Vec::new(), Vec::new());
        Self { at: At::Skip(PREFACE), held, block, stream: 0, newest: 0, fields: Fields::default(), malformed }
    }

    /// Looks at what came.
    pub(super) fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.at != At::Lost {
            let used = match self.at {
                At::Skip(left) => {
                    let used = left.min(bytes.len());
                    self.at = if used == left { At::Head } else { At::Skip(left - used) };
                    used
                }
                At::Head => self.hold(bytes, HEAD - self.held.len(), Self::begin),
                At::Payload(left, ..) => {
                    let used = left.min(bytes.len());
                    if let At::Payload(left, ..) = &mut self.at {
                        *left -= used;
                    }
                    self.hold(bytes, left, Self::end)
                }
                At::Lost => return,
            };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    /// Holds up to `wanted` bytes; `then` is done once all are there.
    fn hold(&mut self, bytes: &[u8], wanted: usize, then: fn(&mut Self)) -> usize {
        let used = wanted.min(bytes.len());
        self.held.extend_from_slice(bytes.get(..used).unwrap_or_default());
        if used == wanted {
            then(self);
            self.held.clear();
        }
        used
    }

    /// A frame's head is there.
    fn begin(&mut self) {
        let &[a, b, c, kind, flags, s, t, u, v] = self.held.as_slice() else { return };
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        self.at = match kind {
            HEADERS | CONTINUATION if length > 0 => At::Payload(length, kind, flags),
            HEADERS | CONTINUATION => At::Head,
            _ if length > 0 => At::Skip(length),
            _ => At::Head,
        };
        if kind == HEADERS {
            self.stream = u32::from_be_bytes([s & 0x7f, t, u, v]);
            self.block.clear();
        }
        if matches!(kind, HEADERS | CONTINUATION) && length == 0 {
            self.collect(flags, &[]);
        }
    }

    /// A payload is there.
    fn end(&mut self) {
        let At::Payload(_, kind, flags) = self.at else { return };
        self.at = At::Head;
        let payload = std::mem::take(&mut self.held);
        match fragment(&payload, kind, flags) {
            Some(fragment) => self.collect(flags, fragment),
            None => self.at = At::Lost,
        }
        self.held = payload;
    }

    fn collect(&mut self, flags: u8, fragment: &[u8]) {
        self.block.extend_from_slice(fragment);
        if self.block.len() > LARGEST {
            self.at = At::Lost;
        }
        if flags & END_HEADERS == 0 {
            return;
        }
        let late = self.stream <= self.newest;
        self.newest = self.newest.max(self.stream);
        let block = std::mem::take(&mut self.block);
        match self.fields.read(&block, late) {
            Some(true) if late => self.malformed.enter(self.stream),
            Some(_) => {}
            None => self.at = At::Lost,
        }
        self.block = block;
        self.block.clear();
    }
}

/// The fields in a payload, without padding and priority.
fn fragment(payload: &[u8], kind: u8, flags: u8) -> Option<&[u8]> {
    if kind != HEADERS {
        return Some(payload);
    }
    let (padding, rest) = match flags & PADDED {
        0 => (0, payload),
        _ => payload.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
    };
    let rest = if flags & PRIORITY == 0 { rest } else { rest.get(5..)? };
    rest.get(..rest.len().checked_sub(padding)?)
}
