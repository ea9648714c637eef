//! What went through each adapter, for `resolver-routes.json`.
use super::SlotKey;
use super::recent::LastFailure;
use super::slot::Slot;
use stado_fleet::ledger::{RouteFailure, RouteState, stamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What an earlier process published, by service and consumer.
#[derive(Debug, Default)]
pub(super) struct Past(Mutex<HashMap<(String, String), RouteState>>);

impl Past {
    pub(super) fn restore(&self, rows: Vec<RouteState>) {
        let rows = rows.into_iter().map(|row| ((row.service.clone(), row.consumer.clone()), row));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows.collect();
    }
}

/// A row for each adapter that was ever used, by service and consumer.
pub(super) fn snapshot(slots: &[(SlotKey, Arc<Slot>)], past: &Past) -> Vec<RouteState> {
    let past = past.0.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = slots.iter().filter_map(|((service, consumer), slot)| {
        let mut row = row(service, consumer.as_deref()?, slot);
        if let Some(before) = past.get(&(row.service.clone(), row.consumer.clone())) {
            row.last_success_at = row.last_success_at.or_else(|| before.last_success_at.clone());
            row.last_failure = row.last_failure.or_else(|| before.last_failure.clone());
            row.last_probe_at = row.last_probe_at.or_else(|| before.last_probe_at.clone());
            if row.endpoint.is_none() {
                (row.active_host, row.endpoint) = (before.active_host.clone(), before.endpoint.clone());
            }
        }
        let tried = row.last_failure.is_some() || row.last_probe_at.is_some();
        (tried || row.active > 0 || row.last_success_at.is_some()).then_some(row)
    });
    let mut rows: Vec<RouteState> = rows.collect();
    rows.sort_by(|a, b| (&a.service, &a.consumer).cmp(&(&b.service, &b.consumer)));
    rows
}

fn row(service: &str, consumer: &str, slot: &Slot) -> RouteState {
    let counters = slot.counters();
    let (towards, failure) = slot.fate();
    RouteState {
        service: service.to_owned(),
        consumer: consumer.to_owned(),
        active_host: towards.as_ref().map(|route| route.active_host.to_string()),
        endpoint: towards.as_ref().map(|route| route.endpoint.addr.to_string()),
        active: counters.active,
        opened: counters.opened,
        bytes_up: counters.bytes_up,
        bytes_down: counters.bytes_down,
        last_success_at: slot.last_reached().map(stamp),
        last_failure: failure.map(published),
        last_probe_at: slot.last_probed().map(stamp),
        ..RouteState::default()
    }
}

fn published(LastFailure { at, hop, cause, blame, .. }: LastFailure) -> RouteFailure {
    RouteFailure { at: stamp(at), hop: hop.code().to_owned(), cause: cause.to_string(), blame: blame.code().to_owned() }
}
