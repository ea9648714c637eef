//! Under what a stream goes on.
use std::pin::Pin;
use tokio::sync::watch;

/// Returns once the stream that it was given for may not go on any more.
pub type Grant = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until what is `held` no longer allows it; why.
pub async fn withdrawn<T>(mut held: watch::Receiver<T>, allows: impl Fn(&T) -> Result<(), String>) -> String {
    loop {
        let now = allows(&held.borrow_and_update());
        if let Err(why) = now {
            return why;
        }
        if held.changed().await.is_err() {
            // Nobody looks any more: what was said last holds.
            std::future::pending::<()>().await;
        }
    }
}
