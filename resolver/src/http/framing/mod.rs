//! Where a body ends (RFC 9112 §6 and §7). Pure: it is shown bytes and says how many are the body's; nothing is kept but a
//! trailer section.

mod chunked;
#[cfg(test)]
mod tests;
mod trailers;

use chunked::Chunked;

/// How a message's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks, and a trailer section.
    Chunked,
    /// Everything until the connection ends.
    Close,
}

/// What a run of bytes is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Its length; 0 only for no bytes, or for a body that is over.
    pub(super) len: usize,
    /// To be passed on; else it has been read and is not needed any more.
    pub(super) pass: bool,
}

/// How a body is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is framed.
    Framed,
    /// Its data alone: for a reader that does not know chunks.
    Data,
    /// Its data, and at the end its trailer section: for a reader that has both.
    Parts,
}

/// A body on its way.
#[derive(Debug)]
pub(super) struct Body {
    state: State,
    form: Form,
}
#[derive(Debug)]
enum State {
    Length(u64),
    Chunked(Box<Chunked>),
    Close,
    Done,
}

impl Body {
    pub(super) fn new(framing: Framing, form: Form) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Box::default()),
            Framing::Close => State::Close,
        };
        Self { state, form }
    }

    /// Whether the body is over.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Reads from the beginning of `bytes`, each byte once. The error says what is wrong with the chunks.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Run, &'static str> {
        match &mut self.state {
            State::Done => Ok(Run { len: 0, pass: true }),
            State::Close => Ok(Run { len: bytes.len(), pass: true }),
            State::Length(left) => {
                let len = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.counted(len);
                Ok(Run { len, pass: true })
            }
            State::Chunked(chunked) => chunked.read(bytes, self.form),
        }
    }

    /// What is written after the last run, before the body is over: the trailer section with its empty line. Ends the body.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        let State::Chunked(chunked) = &mut self.state else { return None };
        let tail = chunked.finish()?;
        self.state = State::Done;
        Some(if self.form == Form::Data { Vec::new() } else { tail })
    }

    /// Bytes of a counted body that have not been read.
    pub(super) fn left(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// `n` bytes of a counted body went past unseen, or were read.
    pub(super) fn counted(&mut self, n: usize) {
        if let State::Length(left) = &mut self.state {
            *left = left.saturating_sub(u64::try_from(n).unwrap_or(u64::MAX));
            if *left == 0 {
                self.state = State::Done;
            }
        }
    }

    /// The source ended its stream. Whether the body is whole.
    pub(super) fn source_ended(&mut self) -> bool {
        if matches!(self.state, State::Close) {
            self.state = State::Done;
        }
        self.is_done()
    }
}
