//! The buffer that all connections of a thread share: bytes stay in it only while one poll runs.
use std::cell::RefCell;

/// Size of the shared buffer, and so the most that a direction holds when its reader does not read.
pub(super) const SIZE: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lends the buffer; a call from within a call gets one of its own.
pub(super) fn with<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with(|buffer| match buffer.try_borrow_mut() {
        Ok(mut buffer) => {
            buffer.resize(SIZE, 0);
            work(&mut buffer)
        }
        Err(_) => work(&mut vec![0; SIZE]),
    })
}
