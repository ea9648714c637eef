//! SIGTERM, SIGINT and SIGHUP → an orderly stop; the second one ends the daemon now.
use crate::exit::Failure;
use stado_resolver::daemon::Shutdown;
use tokio::signal::unix::{SignalKind, signal};

/// Listens from here on, for as long as the runtime lives.
pub(super) fn listen(shutdown: Shutdown) -> Result<(), Failure> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")))?;
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                shutdown.signal();
            }
        });
    }
    Ok(())
}
