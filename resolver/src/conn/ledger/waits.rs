//! Who waits for an answer now (fleet contract §4.7).
use super::super::FrontendId;
use super::life::Phase;
use jiff::Timestamp;
use stado_fleet::directory::Route;
use stado_fleet::ledger::Wait;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Waits begin and end with requests: several locks keep connections out of each other's way.
const SHARDS: usize = 16;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) frontend: Arc<FrontendId>,
    pub(super) route: Arc<Route>,
    pub(super) phase: Phase,
    pub(super) since: Timestamp,
    pub(super) client: SocketAddr,
    pub(super) request: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    shards: [Mutex<HashMap<u64, Row>>; SHARDS],
    opens: AtomicUsize,
    asks: AtomicUsize,
}
impl Table {
    /// Enters the wait of connection `id` in place of its former one; returns how many waits of that phase there are now.
    pub(super) fn enter(&self, id: u64, row: Row) -> usize {
        self.leave(id);
        let now = self.count(row.phase).fetch_add(1, Ordering::Relaxed) + 1;
        self.shard(id).insert(id, row);
        now
    }
    /// Removes the wait of connection `id`, if it has one, and returns how many of that phase are left.
    pub(super) fn leave(&self, id: u64) -> Option<(Row, usize)> {
        let row = self.shard(id).remove(&id)?;
        let left = self.count(row.phase).fetch_sub(1, Ordering::Relaxed) - 1;
        Some((row, left))
    }
    /// The oldest first.
    pub(super) fn snapshot(&self) -> Vec<Wait> {
        let mut rows: Vec<(Timestamp, u64, Wait)> = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            rows.extend(shard.iter().map(|(id, row)| (row.since, *id, row.published())));
        }
        rows.sort_by_key(|(since, id, _)| (*since, *id));
        rows.into_iter().map(|(_, _, wait)| wait).collect()
    }
    fn count(&self, phase: Phase) -> &AtomicUsize {
        if phase == Phase::Opening { &self.opens } else { &self.asks }
    }
    fn shard(&self, id: u64) -> MutexGuard<'_, HashMap<u64, Row>> {
        let at = usize::try_from(id % 16).unwrap_or_default();
        // SHARDS is 16, so `at` is always inside.
        let [first, ..] = &self.shards;
        lock(self.shards.get(at).unwrap_or(first))
    }
}

impl Row {
    fn published(&self) -> Wait {
        Wait {
            service: self.frontend.service.to_string(),
            consumer: self.frontend.consumer.as_deref().unwrap_or_default().to_owned(),
            bind: self.frontend.bind.to_string(),
            active_host: self.route.active_host.to_string(),
            endpoint: self.route.endpoint.addr.to_string(),
            since: seconds(self.since),
            phase: if self.phase == Phase::Opening { "open" } else { "answer" }.to_owned(),
            client: Some(self.client.to_string()),
            request: self.request.as_deref().map(str::to_owned),
        }
    }
}

/// A time as the waiting list and the answers carry it: `2026-10-20T10:00:00+00:00`.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

fn lock(shard: &Mutex<HashMap<u64, Row>>) -> MutexGuard<'_, HashMap<u64, Row>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
