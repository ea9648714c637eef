//! Bytes that were read and not used up yet. The memory belongs to the thread while a connection rests.
use super::socket::Io;
use std::cell::RefCell;
use std::io;
use std::task::{Context, Poll};

/// Room of a buffer: most requests and answers fit.
pub(super) const SIZE: usize = 16 << 10;
/// Room while a body streams.
pub(super) const STREAM: usize = 64 << 10;
/// Buffers that a thread keeps for its next connection.
const KEPT: usize = 64;

thread_local! {
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Empty memory of at least [`SIZE`] bytes.
pub(super) fn take() -> Vec<u8> {
    let kept = FREE.try_with(|free| free.try_borrow_mut().ok().and_then(|mut free| free.pop())).ok().flatten();
    kept.unwrap_or_else(|| Vec::with_capacity(SIZE))
}

/// Gives memory back, unless it is of an unusual size.
pub(super) fn give(mut memory: Vec<u8>) {
    if !(SIZE..=STREAM).contains(&memory.capacity()) {
        return;
    }
    memory.clear();
    // A thread that ends keeps nothing.
    let _ = FREE.try_with(|free| {
        if let Ok(mut free) = free.try_borrow_mut()
            && free.len() < KEPT
        {
            free.push(memory);
        }
    });
}

/// Bytes of one side. Without bytes it has no memory until it is filled.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { memory: bytes, start: 0 }
    }
    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or_default()
    }
    pub(super) fn len(&self) -> usize {
        self.memory.len() - self.start
    }
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The first `n` bytes are used up.
    pub(super) fn used(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.memory.len());
        if self.start == self.memory.len() {
            self.memory.clear();
            self.start = 0;
        }
    }
    /// Gives the memory back to the thread, if it holds no bytes.
    pub(super) fn rest(&mut self) {
        if self.is_empty() {
            self.start = 0;
            give(std::mem::take(&mut self.memory));
        }
    }
    /// All bytes, leaving none.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut memory = std::mem::take(&mut self.memory);
        memory.drain(..std::mem::take(&mut self.start).min(memory.len()));
        memory
    }

    /// Reads what `from` has, keeping `room` bytes of memory at least; 0 is the end of its stream.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl Io,
        room: usize,
    ) -> Poll<io::Result<usize>> {
        if self.memory.capacity() == 0 {
            self.memory = take();
        }
        if self.start > 0 && self.memory.len() == self.memory.capacity() {
            self.memory.drain(..self.start);
            self.start = 0;
        }
        if self.memory.len() == self.memory.capacity() || self.memory.capacity() < room {
            let wanted = room.max(self.memory.len() * 2);
            self.memory.reserve_exact(wanted - self.memory.len());
        }
        from.poll_fill(cx, &mut self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_used_from_the_front_and_memory_goes_back() {
        let mut buffer = Buffer::new(b"abcdef".to_vec());
        buffer.used(2);
        assert_eq!((buffer.bytes(), buffer.len()), (&b"cdef"[..], 4));
        assert_eq!(buffer.take(), b"cdef");
        assert!(buffer.is_empty());
        let mut buffer = Buffer::new(Vec::with_capacity(SIZE));
        buffer.rest();
        assert_eq!(take().capacity(), SIZE);
        buffer.used(9);
        assert!(buffer.bytes().is_empty());
    }
}
