//! Chunks (RFC 9112 §7.1), read strictly: what one reader takes for a chunk's end no other may take for data.
use super::trailers::Trailers;
use super::{Form, Run};

/// Longest line with a chunk's size and extensions.
const LINE: usize = 4096;

/// A chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    at: At,
    trailers: Trailers,
}

#[derive(Debug, Clone, Copy)]
enum At {
    /// In the digits of a size: the size so far, and how many bytes the line has.
    Size {
        size: u64,
        len: usize,
    },
    /// Behind the size, in extensions.
    Extension {
        size: u64,
        len: usize,
    },
    /// Behind the carriage return of a size line.
    SizeFeed {
        size: u64,
    },
    Data(u64),
    /// Behind a chunk's data.
    DataReturn,
    DataFeed,
    Trailers,
    Done,
}
impl Default for At {
    fn default() -> Self {
        Self::Size { size: 0, len: 0 }
    }
}

impl Chunked {
    /// One run of bytes that are treated alike.
    pub(super) fn read(&mut self, bytes: &[u8], form: Form) -> Result<Run, &'static str> {
        let (mut len, mut pass) = (0, true);
        while len < bytes.len() {
            let rest = bytes.get(len..).unwrap_or_default();
            let passes = match self.at {
                At::Trailers | At::Done => false,
                At::Data(_) => true,
                _ => form == Form::Framed,
            };
            if len > 0 && passes != pass {
                break;
            }
            pass = passes;
            let used = self.step(rest)?;
            if used == 0 {
                break;
            }
            len += used;
        }
        Ok(Run { len, pass })
    }

    /// The trailer section, once it is whole.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        matches!(self.at, At::Done).then(|| self.trailers.take())
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let Some(byte) = bytes.first().copied() else { return Ok(0) };
        self.at = match self.at {
            At::Data(left) => {
                let used = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                let left = left - u64::try_from(used).unwrap_or(left);
                self.at = if left == 0 { At::DataReturn } else { At::Data(left) };
                return Ok(used);
            }
            At::Trailers => {
                let used = self.trailers.read(bytes)?;
                if self.trailers.is_whole() {
                    self.at = At::Done;
                }
                return Ok(used);
            }
            At::Done => return Ok(0),
            At::Size { size, len } => in_size(size, len, byte)?,
            At::Extension { size, len } => match byte {
                b'\r' => At::SizeFeed { size },
                b'\t' | b' '..=b'~' | 0x80.. if len < LINE => At::Extension { size, len: len + 1 },
                _ => return Err("a chunk's extension is malformed or too long"),
            },
            At::SizeFeed { size } => match (byte, size) {
                (b'\n', 0) => At::Trailers,
                (b'\n', size) => At::Data(size),
                _ => return Err("a chunk's size ends in a bare carriage return"),
            },
            At::DataReturn if byte == b'\r' => At::DataFeed,
            At::DataFeed if byte == b'\n' => At::Size { size: 0, len: 0 },
            At::DataReturn | At::DataFeed => return Err("a chunk is longer than its size"),
        };
        Ok(1)
    }
}

fn in_size(size: u64, len: usize, byte: u8) -> Result<At, &'static str> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        b';' if len > 0 => return Ok(At::Extension { size, len }),
        b'\r' if len > 0 => return Ok(At::SizeFeed { size }),
        _ => return Err("a chunk's size is not a hexadecimal number"),
    };
    // 15 digits are a petabyte a thousand times over.
    if len >= 15 {
        return Err("a chunk's size is too large");
    }
    Ok(At::Size { size: size * 16 + u64::from(digit), len: len + 1 })
}
