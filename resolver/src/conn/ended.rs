//! Why a frontend of this daemon's mesh ended a connection, for a relay that brought it from another host.
use super::ledger::Ledger;
use super::{Backend, OwnListeners};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The ledger closes a connection a moment after its client sees the end.
const CLOSED: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_millis(10);

/// What is said when nothing could be reached behind the frontend at `endpoint` for the connection that came from `client`; `None`
/// when there is no such frontend, or when its service ended the connection by itself.
pub async fn why_ended(
    own: &OwnListeners,
    ledger: &Ledger,
    endpoint: SocketAddr,
    client: SocketAddr,
) -> Option<String> {
    let until = Instant::now() + CLOSED;
    loop {
        let frontend = own.frontend(endpoint)?;
        // Such a connection is closed before it is in the ledger.
        if let Backend::None(reason) = &**frontend.backend.load() {
            return Some(format!("no backend: {reason}"));
        }
        let ended = ledger.recent(&frontend.id.service).into_iter().find(|recent| recent.client == client);
        if let Some(ended) = ended {
            return ended.failure().map(|failure| failure.cause.to_string());
        }
        if Instant::now() >= until {
            return None;
        }
        sleep(AGAIN).await;
    }
}
