//! Keeps this host's forward markers (fleet contract §5): what the directory declares, before `serving` and on every change.
use super::plan::AdapterId;
use stado_fleet::document::Registry;
use stado_fleet::forwards::{Forwards, declared};
use stado_fleet::ledger::Unserved;
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Writes what is missing or different. Markers that could not be written, as they are published; one never stops another.
pub async fn keep(
    forwards: &Forwards,
    registry: &std::sync::Arc<Registry>,
    target: &TargetName,
    binds: BTreeMap<AdapterId, SocketAddr>,
) -> Vec<Unserved> {
    let dir = forwards.dir().display().to_string();
    let (forwards, registry, target) = (forwards.clone(), registry.clone(), target.clone());
    let kept = tokio::task::spawn_blocking(move || {
        let bind = |service: &str, consumer: &str| {
            binds
                .iter()
                .find(|(id, _)| id.service.as_str() == service && id.consumer.as_str() == consumer)
                .map(|(_, bind)| *bind)
        };
        let (written, failed) = forwards.keep(&declared(&registry, &target, &bind).0);
        let place = |service: String, error| (forwards.marker(&service).display().to_string(), service, error);
        (written, failed.into_iter().map(|(service, error)| place(service, error)).collect::<Vec<_>>())
    })
    .await;
    let (written, failed) = match kept {
        Ok(kept) => kept,
        Err(error) => return vec![unserved("forward markers".to_owned(), dir, &error)],
    };
    for marker in written {
        tracing::info!(target: "stado::fleet", "stado resolver wrote forward marker {} -> {}", marker.service, marker.url);
    }
    failed
        .into_iter()
        .map(|(place, service, error)| unserved(format!("forward marker of {service}"), place, &error))
        .collect()
}

/// A row beside the adapters that are not served: it has a place instead of a bind, and no consumer.
fn unserved(what: String, place: String, why: &dyn std::fmt::Display) -> Unserved {
    let reason = format!("it could not be written: {why}");
    Unserved { service: what, bind: place, reason, ..Unserved::default() }
}
