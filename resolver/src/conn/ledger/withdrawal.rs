//! The end of everything that a service and consumer have open, because the directory no longer allows it.
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What the connections of a slot run under. Once withdrawn it stays so; what comes later runs under the slot's next one.
#[derive(Debug, Default)]
pub(crate) struct Withdrawal {
    why: OnceLock<Arc<str>>,
    token: CancellationToken,
}

impl Withdrawal {
    /// Ends what runs under it.
    pub(super) fn withdraw(&self, why: &Arc<str>) {
        // The first reason stays: a second withdrawal finds nothing more to end.
        let _ = self.why.set(Arc::clone(why));
        self.token.cancel();
    }

    /// Why, once it is.
    pub(super) fn why(&self) -> Option<&Arc<str>> {
        self.why.get()
    }

    /// Returns when it is withdrawn.
    pub(crate) async fn withdrawn(&self) {
        self.token.cancelled().await;
    }
}
