//! Verbs that serve until they are told to stop.
use crate::exit::Failure;
use tokio::signal::unix::{SignalKind, signal};

/// Returns at the first SIGINT or SIGTERM.
pub(crate) async fn until_stopped() -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
