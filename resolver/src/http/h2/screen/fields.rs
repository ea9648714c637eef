//! The compressed fields of one side of a connection (RFC 7541), as far as it takes to know which are pseudo fields: the table
//! that both sides keep is followed with the length of each entry instead of its text.
use super::huffman;
use std::collections::VecDeque;

/// What we announce, as it is the default.
const TABLE: usize = 4096;
/// What an entry costs besides its text.
const COST: usize = 32;
/// Lengths of the static table's names; the first [`PSEUDO`] are pseudo fields.
const NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12, 6, 4,
    4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
];
const PSEUDO: usize = 14;

/// A name: its length, and whether it is a pseudo field's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    length: usize,
    pseudo: bool,
}

/// The table.
#[derive(Debug)]
pub(super) struct Fields {
    /// Newest first, with the size of each.
    entries: VecDeque<(Name, usize)>,
    size: usize,
    most: usize,
}
impl Default for Fields {
    fn default() -> Self {
        Self { entries: VecDeque::new(), size: 0, most: TABLE }
    }
}

impl Fields {
    /// Reads one whole block: whether a pseudo field is in it, which is told only if `asked`. `None`: it is no block.
    pub(super) fn read(&mut self, block: &[u8], asked: bool) -> Option<bool> {
        let (mut rest, mut pseudo) = (block, false);
        while let Some(byte) = rest.first().copied() {
            match byte {
                0x80.. => {
                    let index = number(&mut rest, 7)?;
                    pseudo |= self.name(index)?.pseudo;
                }
                0x40.. => {
                    let (name, value) = self.literal(&mut rest, 6, true)?;
                    pseudo |= name.pseudo;
                    self.enter(name, value);
                }
                0x20.. => {
                    self.most = Some(number(&mut rest, 5)?).filter(|most| *most <= TABLE)?;
                    self.evict(0);
                }
                _ => pseudo |= self.literal(&mut rest, 4, asked)?.0.pseudo,
            }
        }
        Some(pseudo)
    }

    /// A field that is written out, and the length of its value; both are measured only if `measured`.
    fn literal(&self, rest: &mut &[u8], bits: u8, measured: bool) -> Option<(Name, usize)> {
        let name = match number(rest, bits)? {
            0 => {
                let (length, pseudo) = text(rest, measured)?;
                Name { length, pseudo }
            }
            index => self.name(index)?,
        };
        Some((name, text(rest, measured && bits == 6)?.0))
    }

    fn name(&self, index: usize) -> Option<Name> {
        let at = index.checked_sub(1)?;
        match NAMES.get(at) {
            Some(length) => Some(Name { length: usize::from(*length), pseudo: at < PSEUDO }),
            None => self.entries.get(at - NAMES.len()).map(|(name, _)| *name),
        }
    }

    fn enter(&mut self, name: Name, value: usize) {
        let size = name.length + value + COST;
        self.evict(size);
        if size <= self.most {
            self.entries.push_front((name, size));
            self.size += size;
        }
    }

    /// Makes room for `more`.
    fn evict(&mut self, more: usize) {
        while self.size + more > self.most {
            let Some((_, size)) = self.entries.pop_back() else { return };
            self.size -= size;
        }
    }
}

/// An integer whose first byte has so many bits for it.
fn number(rest: &mut &[u8], bits: u8) -> Option<usize> {
    let (first, mut after) = rest.split_first()?;
    let most = (1usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        for shift in (0..).step_by(7) {
            let (byte, next) = after.split_first()?;
            after = next;
            if shift > 28 {
                return None;
            }
            value = value.checked_add(usize::from(byte & 0x7f) << shift)?;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Some(value)
}

/// A string: its length, and whether it begins with a colon; of no interest unless `measured`.
fn text(rest: &mut &[u8], measured: bool) -> Option<(usize, bool)> {
    let coded = rest.first()? & 0x80 != 0;
    let length = number(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(match (measured, coded) {
        (false, _) => (0, false),
        (true, false) => (length, bytes.first() == Some(&b':')),
        (true, true) => huffman::measure(bytes),
    })
}
