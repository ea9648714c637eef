//! bollard's shapes → ours. What is missing is read as absent: engines differ (Podman, old and new Docker).
use super::container::{Binding, Container, Health, Phase};
use super::engine::{Event, Listed, What};
use bollard::models::{
    ContainerInspectResponse, ContainerState, ContainerStateStatusEnum, ContainerSummary, EventMessage,
    EventMessageTypeEnum, HealthStatusEnum, PortMap,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Longest output of a health check that is shown, in characters.
const OUTPUT: usize = 120;

/// An entry of a list; `None` without an id.
pub(super) fn listed(summary: ContainerSummary) -> Option<Listed> {
    let id = summary.id.filter(|id| !id.is_empty())?;
    let labels = summary.labels.unwrap_or_default().into_iter().collect();
    let name = summary.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
    let mut ports: Vec<String> = summary
        .ports
        .unwrap_or_default()
        .iter()
        .map(|p| {
            format!(
                "{}:{}>{}{:?}",
                p.ip.as_deref().unwrap_or_default(),
                p.public_port.unwrap_or(0),
                p.private_port,
                p.typ
            )
        })
        .collect();
    ports.sort_unstable();
    // `Up 5 minutes (healthy)`: the minutes change by themselves, the word does not.
    let status = summary.status.unwrap_or_default();
    let health = status.rsplit_once('(').map(|(_, word)| word).filter(|word| word.ends_with(')')).unwrap_or_default();
    let state = summary.state.map(|state| state.to_string()).unwrap_or_default();
    let digest = format!("{name} {state} {health} {}", ports.join(" "));
    let asks_for = super::labels::asks_for(&labels);
    Some(Listed { id, name: name.trim_start_matches('/').to_owned(), asks_for, digest })
}

/// An inspection.
pub(super) fn container(answer: ContainerInspectResponse) -> Container {
    let state = answer.state.unwrap_or_default();
    let network = answer.host_config.and_then(|host| host.network_mode).unwrap_or_default();
    Container {
        id: answer.id.unwrap_or_default(),
        name: answer.name.unwrap_or_default().trim_start_matches('/').to_owned(),
        started_at: state.started_at.as_deref().and_then(|text| text.parse().ok()),
        phase: phase(&state),
        health: state.health.as_ref().and_then(health),
        labels: answer.config.and_then(|config| config.labels).unwrap_or_default().into_iter().collect(),
        ports: ports(answer.network_settings.and_then(|settings| settings.ports).unwrap_or_default()),
        shared_network: Some(network).filter(|n| n == "host" || n == "none" || n.starts_with("container:")),
    }
}

fn phase(state: &ContainerState) -> Phase {
    match state.status {
        Some(ContainerStateStatusEnum::RUNNING | ContainerStateStatusEnum::STOPPING) => Phase::Running,
        Some(ContainerStateStatusEnum::PAUSED) => Phase::Paused,
        Some(ContainerStateStatusEnum::EMPTY) | None if state.paused == Some(true) => Phase::Paused,
        Some(ContainerStateStatusEnum::EMPTY) | None if state.running == Some(true) => Phase::Running,
        _ => Phase::Stopped,
    }
}

fn health(health: &bollard::models::Health) -> Option<Health> {
    match health.status? {
        HealthStatusEnum::STARTING => Some(Health::Starting),
        HealthStatusEnum::HEALTHY => Some(Health::Healthy),
        HealthStatusEnum::UNHEALTHY => {
            let last = health.log.as_ref().and_then(|log| log.last()).and_then(|entry| entry.output.as_deref());
            let line = last.and_then(|output| output.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
            let output = line.trim().chars().filter(|c| !c.is_control()).take(OUTPUT).collect();
            Some(Health::Unhealthy { streak: health.failing_streak.unwrap_or_default(), output })
        }
        HealthStatusEnum::EMPTY | HealthStatusEnum::NONE => None,
    }
}

fn ports(map: PortMap) -> BTreeMap<String, Vec<Binding>> {
    let bindings = |all: Option<Vec<bollard::models::PortBinding>>| {
        let text = |value: Option<String>| value.unwrap_or_default();
        all.unwrap_or_default().into_iter().map(|b| Binding { ip: text(b.host_ip), port: text(b.host_port) }).collect()
    };
    map.into_iter().map(|(port, all)| (port, bindings(all))).collect()
}

/// An event; `None` for one that cannot change anything here.
pub(super) fn event(message: EventMessage) -> Option<Event> {
    let actor = message.actor?;
    let attributes: BTreeMap<String, String> = actor.attributes.unwrap_or_default().into_iter().collect();
    let action = message.action.unwrap_or_default();
    let (container, what) = match message.typ {
        Some(EventMessageTypeEnum::NETWORK) if matches!(action.as_str(), "connect" | "disconnect") => {
            (attributes.get("container").cloned()?, What::Changed)
        }
        Some(EventMessageTypeEnum::CONTAINER) => (actor.id?, what(&action)?),
        _ => return None,
    };
    // A network's attributes are not the container's.
    let attributes = if message.typ == Some(EventMessageTypeEnum::CONTAINER) { attributes } else { BTreeMap::new() };
    let nanos = message.time_nano.map(i128::from).or_else(|| message.time.map(|s| i128::from(s) * 1_000_000_000));
    let at = nanos.and_then(|nanos| Timestamp::from_nanosecond(nanos).ok());
    Some(Event { container, what, at, attributes })
}

/// Docker's words, and Podman's where they differ.
fn what(action: &str) -> Option<What> {
    match action {
        "start" | "restart" | "pause" | "unpause" | "rename" | "update" => Some(What::Changed),
        "die" | "died" => Some(What::Ended("died")),
        "stop" => Some(What::Ended("stopped")),
        "destroy" | "remove" => Some(What::Ended("was removed")),
        health if health.starts_with("health_status") => Some(What::Changed),
        _ => None,
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
