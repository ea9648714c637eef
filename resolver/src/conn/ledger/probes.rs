//! Connections of this host's own commands, which look whether an adapter serves: they are no traffic, and that they reach a
//! service is no success of its clients. A command announces the address that it is about to connect from.
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A command connects at once. An address that somebody else is given later is his.
const LIFE: Duration = Duration::from_secs(10);
/// Announced at a time; further ones are not taken, and count as traffic.
const MOST: usize = 4096;

/// What a command wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Whether the adapter accepts: its service is left alone.
    Accepts,
    /// Whether the service is reached.
    Reaches,
}

#[derive(Debug, Default)]
pub(super) struct Probes {
    /// So that a connection costs one load while nobody probes.
    announced: AtomicUsize,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    by_client: HashMap<SocketAddr, (Probe, Instant)>,
    latest: Option<Instant>,
}

impl Probes {
    pub(super) fn announce(&self, clients: impl IntoIterator<Item = SocketAddr>, probe: Probe, now: Instant) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.by_client.retain(|_, (_, at)| now.duration_since(*at) < LIFE);
        book.latest = Some(now);
        for client in clients {
            if book.by_client.len() < MOST {
                book.by_client.insert(canonical(client), (probe, now));
            }
        }
        self.announced.store(book.by_client.len(), Ordering::Release);
    }

    /// Whether the connection from `client` was announced for this; the announcement holds for no second one.
    pub(super) fn take(&self, client: SocketAddr, probe: Probe, now: Instant) -> bool {
        if self.announced.load(Ordering::Acquire) == 0 {
            return false;
        }
        let client = canonical(client);
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |at: Instant| now.duration_since(at) < LIFE;
        let found = book.by_client.get(&client).is_some_and(|(what, at)| *what == probe && fresh(*at));
        if found {
            book.by_client.remove(&client);
        } else if !book.latest.is_some_and(fresh) {
            book.by_client.clear();
        }
        self.announced.store(book.by_client.len(), Ordering::Release);
        found
    }
}

fn canonical(client: SocketAddr) -> SocketAddr {
    SocketAddr::new(client.ip().to_canonical(), client.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_holds_for_one_connection_and_not_for_long() {
        let (probes, now) = (Probes::default(), Instant::now());
        let client: SocketAddr = "127.0.0.1:50000".parse().unwrap();
        assert!(!probes.take(client, Probe::Reaches, now));
        probes.announce([client], Probe::Reaches, now);
        assert!(!probes.take(client, Probe::Accepts, now), "for the other one");
        assert!(probes.take("[::ffff:127.0.0.1]:50000".parse().unwrap(), Probe::Reaches, now));
        assert!(!probes.take(client, Probe::Reaches, now), "the next one from there is somebody's");
        probes.announce([client], Probe::Accepts, now);
        assert!(!probes.take(client, Probe::Accepts, now + LIFE), "so is one that comes late");
    }

    #[test]
    fn a_flood_of_announcements_is_bounded() {
        let (probes, now) = (Probes::default(), Instant::now());
        let all = (1..=u16::MAX).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        probes.announce(all, Probe::Accepts, now);
        assert_eq!(probes.book.lock().unwrap().by_client.len(), MOST);
        assert!(!probes.take("127.0.0.1:9".parse().unwrap(), Probe::Reaches, now + LIFE));
        assert_eq!(probes.announced.load(Ordering::Acquire), 0);
    }
}
