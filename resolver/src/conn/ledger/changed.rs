//! A flag that one reader sleeps on. Raising it costs one atomic swap while it is up already.
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Changed {
    up: AtomicBool,
    reader: Notify,
}
impl Changed {
    pub(super) fn raise(&self) {
        if !self.up.swap(true, Ordering::AcqRel) {
            self.reader.notify_one();
        }
    }
    /// Returns once the flag was raised, and lowers it.
    pub(super) async fn wait(&self) {
        while !self.up.swap(false, Ordering::AcqRel) {
            self.reader.notified().await;
        }
    }
}
