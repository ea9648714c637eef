//! What the fleet's state file tells of the daemon's other parts: what is not served, and which containers are refused.
use super::part::Place;
use crate::api::object::Closed;
use crate::apply::report::Elsewhere;
use crate::docker;
use crate::http::FleetView;
use stado_fleet::join::Shelf;
use stado_fleet::ledger::{Unserved, stamp};
use stado_fleet::wire::RefusedList;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The shortest time between two tellings of what containers are refused.
const BETWEEN_TELLINGS: Duration = Duration::from_secs(1);

/// Where other parts tell it.
#[derive(Debug, Clone)]
pub(super) struct Outside {
    elsewhere: watch::Sender<Elsewhere>,
    /// What the fleet side holds and serves, for the router.
    pub(super) view: Option<FleetView>,
    /// Makes the loop publish at once.
    pub(super) wake: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

impl Outside {
    pub(super) fn new(elsewhere: watch::Sender<Elsewhere>) -> Self {
        Self { elsewhere, view: None, wake: Arc::new(Notify::new()), stop: CancellationToken::new() }
    }

    /// With what the fleet side will hold.
    pub(super) fn seeing(self, view: FleetView) -> Self {
        Self { view: Some(view), ..self }
    }

    /// What is worth saying of the router, all of it, and where its index is.
    pub(super) fn router_says(&self, warnings: Vec<String>, index: Option<String>) {
        let told = self.elsewhere.send_if_modified(|all| {
            let changed = all.router != warnings || all.index != index;
            all.router = warnings;
            all.index = index;
            changed
        });
        if told {
            self.wake.notify_one();
        }
    }

    /// What is worth saying of this host's publications; all of it.
    pub(super) fn bridge_says(&self, warnings: Vec<String>) {
        self.elsewhere.send_modify(|all| all.bridge = warnings);
        self.wake.notify_one();
    }

    /// A part is not served, or for another reason than before.
    pub(super) fn not_served(&self, place: &Place, reason: &str) {
        self.elsewhere.send_modify(|all| match all.unserved.iter_mut().find(|row| row.service == place.what) {
            Some(row) => reason.clone_into(&mut row.reason),
            None => all.unserved.push(Unserved {
                service: place.what.to_owned(),
                bind: place.bind.clone(),
                reason: reason.to_owned(),
                since: Some(stamp(jiff::Timestamp::now())),
                ..Unserved::default()
            }),
        });
        self.wake.notify_one();
    }

    /// A part is served.
    pub(super) fn served(&self, what: &str) {
        self.elsewhere.send_modify(|all| all.unserved.retain(|row| row.service != what));
        self.wake.notify_one();
    }

    /// The object API is served there.
    pub(super) fn objects_at(&self, url: &str) {
        self.elsewhere.send_modify(|all| all.object_api = Some(url.to_owned()));
        self.wake.notify_one();
    }

    /// Namespaces of the object API that are closed; all of them.
    pub(super) fn objects_closed(&self, bind: SocketAddr, closed: &Closed) {
        let told = self.elsewhere.send_if_modified(|all| {
            let since = stamp(jiff::Timestamp::now());
            let rows: Vec<Unserved> = closed
                .iter()
                .map(|(namespace, reason)| {
                    let service = format!("{} namespace {namespace}", super::objects_side::WHAT);
                    let before = all.closed.iter().find(|row| row.service == service).and_then(|row| row.since.clone());
                    let since = Some(before.unwrap_or_else(|| since.clone()));
                    let (bind, reason) = (bind.to_string(), reason.clone());
                    Unserved { service, bind, reason, since, ..Unserved::default() }
                })
                .collect();
            let changed = all.closed != rows;
            all.closed = rows;
            changed
        });
        if told {
            self.wake.notify_one();
        }
    }

    /// Keeps the state file told about invitations that were shown by more than one host.
    pub(super) fn follow_invitations(&self, shelf: Shelf) {
        let this = self.clone();
        tokio::spawn(async move {
            let mut seen = None;
            loop {
                let now = tokio::fs::metadata(shelf.path())
                    .await
                    .ok()
                    .and_then(|file| Some((file.len(), file.modified().ok()?)));
                if now != seen {
                    let shelf = shelf.clone();
                    let read = tokio::task::spawn_blocking(move || shelf.read()).await;
                    let warnings = match read {
                        Ok(Ok(book)) => book.warnings(),
                        Ok(Err(error)) => vec![error.to_string()],
                        Err(_) => Vec::new(),
                    };
                    seen = now;
                    this.invitations_say(warnings);
                }
                tokio::select! {
                    () = this.stop.cancelled() => return,
                    () = tokio::time::sleep(BETWEEN_TELLINGS) => {}
                }
            }
        });
    }

    fn invitations_say(&self, warnings: Vec<String>) {
        let told = self.elsewhere.send_if_modified(|all| {
            let changed = all.invitations != warnings;
            all.invitations = warnings;
            changed
        });
        if told {
            self.wake.notify_one();
        }
    }

    /// Why a part is not served.
    pub(super) fn reason(&self, what: &str) -> Option<String> {
        self.elsewhere.borrow().unserved.iter().find(|row| row.service == what).map(|row| row.reason.clone())
    }

    /// Keeps the state file told about containers that are not served, as they change.
    pub(super) fn follow_refused(&self, mut refused: watch::Receiver<RefusedList>) {
        let this = self.clone();
        tokio::spawn(async move {
            loop {
                let warnings = docker::warnings(&refused.borrow_and_update());
                let told = this.elsewhere.send_if_modified(|all| {
                    let changed = all.warnings != warnings;
                    all.warnings = warnings;
                    changed
                });
                if told {
                    this.wake.notify_one();
                }
                tokio::select! {
                    () = this.stop.cancelled() => return,
                    changed = refused.changed() => if changed.is_err() { return },
                }
                // A container that comes and goes changes the list often; each telling reads the registry once.
                tokio::select! {
                    () = this.stop.cancelled() => return,
                    () = tokio::time::sleep(BETWEEN_TELLINGS) => {}
                }
            }
        });
    }
}
