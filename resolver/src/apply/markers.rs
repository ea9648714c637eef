//! Keeps this host's forward markers (fleet contract §5): what the directory declares, before `serving` and on every change.
use super::plan::AdapterId;
use stado_fleet::document::Registry;
use stado_fleet::forwards::{Forwards, declared};
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Writes what is missing or different. The sentences of markers that could not be written; one never stops another.
pub async fn keep(
    forwards: &Forwards,
    registry: &std::sync::Arc<Registry>,
    target: &TargetName,
    binds: BTreeMap<AdapterId, SocketAddr>,
) -> Vec<String> {
    let (forwards, registry, target) = (forwards.clone(), registry.clone(), target.clone());
    let kept = tokio::task::spawn_blocking(move || {
        let bind = |service: &str, consumer: &str| {
            binds
                .iter()
                .find(|(id, _)| id.service.as_str() == service && id.consumer.as_str() == consumer)
                .map(|(_, bind)| *bind)
        };
        forwards.keep(&declared(&registry, &target, &bind).0)
    })
    .await;
    let (written, failed) = match kept {
        Ok(kept) => kept,
        Err(error) => return vec![format!("the forward markers could not be kept: {error}")],
    };
    for marker in written {
        tracing::info!(target: "stado::fleet", "stado resolver wrote forward marker {} -> {}", marker.service, marker.url);
    }
    failed
        .into_iter()
        .map(|(service, error)| format!("the forward marker of {service} could not be written: {error}"))
        .collect()
}
