//! Why a container is not served, and what to do about it. Each kind has a line in `docs/docker.md`.
use super::container::{Container, short};
use super::labels::LabelFault;

/// Something a container asks for that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Container id.
    pub container_id: String,
    /// Container name.
    pub container: String,
    /// Service, as far as it is known.
    pub service: String,
    /// The label that is wrong, when one is.
    pub label: String,
    /// Why.
    pub why: Why,
}

/// The kinds of refusals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A label cannot be used.
    Label(String),
    /// The port is not published on the host.
    NotPublished {
        /// Port of the container.
        port: u16,
        /// It is published for UDP.
        udp: bool,
        /// The network namespace it shares, which rules publishing out.
        shared_network: Option<String>,
    },
    /// Published where the whole network can reach it.
    Exposed {
        /// Port of the container.
        port: u16,
        /// Where.
        on: String,
    },
    /// Published on one address that is not loopback, which 127.0.0.1 does not reach.
    Elsewhere {
        /// Port of the container.
        port: u16,
        /// Where.
        on: String,
    },
    /// The host port is no number.
    BadPort(String),
    /// Another running container of the same owner started later.
    Superseded {
        /// Name of the other.
        by: String,
        /// Id of the other.
        id: String,
    },
    /// Another container owns the name.
    NameTaken {
        /// Owner key of the other.
        owner: String,
    },
    /// The engine is on another host, and its address gives no way to what it publishes.
    EngineElsewhere(String),
    /// The engine did not tell about it.
    NotInspected(String),
    /// The mesh said no.
    Mesh(String),
    /// It is served here, and asks to be offered to the fleet, which this host lets no container ask for.
    Withheld,
}

impl Refusal {
    /// A refusal of one service of `container`.
    pub fn of(container: &Container, service: &str, why: Why) -> Self {
        Self {
            container_id: container.id.clone(),
            container: container.name.clone(),
            service: service.to_owned(),
            label: String::new(),
            why,
        }
    }

    /// A refusal for a label.
    pub fn label(container: &Container, fault: LabelFault) -> Self {
        let LabelFault { label, service, reason } = fault;
        Self { label, ..Self::of(container, &service, Why::Label(reason)) }
    }

    /// Whether the container does run and is only out of luck: its successor serves.
    pub fn is_superseded(&self) -> bool {
        matches!(self.why, Why::Superseded { .. })
    }

    /// Whether the service is served all the same.
    pub fn is_served(&self) -> bool {
        matches!(self.why, Why::Withheld)
    }

    fn shown(&self) -> &str {
        if self.container.is_empty() { short(&self.container_id) } else { &self.container }
    }

    /// Why, in one sentence.
    pub fn reason(&self) -> String {
        let container = self.shown();
        match &self.why {
            Why::Label(reason) | Why::Mesh(reason) => reason.clone(),
            Why::NotPublished { port, udp: true, .. } => format!(
                "container /{container} is labeled for devmesh but {port}/tcp is not published to the host; {port}/udp is, which is not served"
            ),
            Why::NotPublished { port, shared_network: Some(network), .. } => format!(
                "container /{container} is labeled for devmesh but {port}/tcp is not published to the host: it runs in the network of {network}"
            ),
            Why::NotPublished { port, .. } => {
                format!("container /{container} is labeled for devmesh but {port}/tcp is not published to the host")
            }
            Why::Exposed { port, on } => {
                format!("container /{container} publishes {port}/tcp on {on}, which is not loopback-only")
            }
            Why::Elsewhere { port, on } => {
                format!("container /{container} publishes {port}/tcp on {on} only, which 127.0.0.1 does not reach")
            }
            Why::BadPort(port) => format!("container /{container} is published on {port:?}, which is not a port"),
            Why::Superseded { by, id } => format!(
                "container /{container} is superseded by /{by} ({}), which has the same owner and started later",
                short(id)
            ),
            Why::NameTaken { owner } => format!("service {} is already owned by {owner}", self.service),
            Why::EngineElsewhere(engine) => format!(
                "container /{container} is published on the host of its engine {engine}, whose loopback is not reached from here"
            ),
            Why::NotInspected(error) => format!("container /{container} could not be inspected: {error}"),
            Why::Withheld => format!(
                "container /{container} asks for it (io.devmesh.publish), and containers of this host may not ask for that"
            ),
        }
    }

    /// What a person can do.
    pub fn remedy(&self) -> String {
        match &self.why {
            Why::Label(_) => "correct the label and recreate the container".into(),
            Why::NotPublished { shared_network: Some(_), .. } => {
                "give the container a network of its own, or register the port with `stado service register`".into()
            }
            Why::NotPublished { port, .. } => {
                format!("publish it on loopback (ports: \"127.0.0.1::{port}\") and recreate the container")
            }
            Why::Exposed { port, .. } => format!(
                "publish it on loopback (ports: \"127.0.0.1::{port}\"), or set docker.allow_non_loopback_published_ports"
            ),
            Why::Elsewhere { port, .. } => format!("publish it on loopback (ports: \"127.0.0.1::{port}\")"),
            Why::BadPort(_) => {
                "recreate the container; if that does not help, ask the engine with `docker inspect`".into()
            }
            Why::Superseded { .. } => {
                "stop the container that is not wanted; it takes the name again when the other ends".into()
            }
            Why::NameTaken { .. } => "give one of them another io.devmesh.name, or stop the other".into(),
            Why::EngineElsewhere(_) => "reach the engine by ssh:// (DOCKER_HOST or a docker context)".into(),
            Why::NotInspected(_) => {
                "it is tried again every few seconds; `docker inspect` shows what the engine says".into()
            }
            Why::Withheld => format!(
                "set publish.labels to true in ~/.stado/config.json and run `stado resolver restart`, or publish it with `stado \
                 service publish {}`",
                self.service
            ),
            Why::Mesh(_) => "it is tried again every few seconds, and taken when the cause is gone".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of each kind's sentence that the page quotes, and every key of a label.
    #[test]
    fn the_page_has_a_line_for_every_kind_of_refusal_and_for_every_label() {
        let page = include_str!("../../../docs/docker.md");
        let text = String::new;
        let not_published = |udp, network: Option<&str>| Why::NotPublished {
            port: 80,
            udp,
            shared_network: network.map(str::to_owned),
        };
        let kinds = [
            (not_published(false, None), "80/tcp is not published to the host"),
            (not_published(true, None), "/udp is, which is not served"),
            (not_published(false, Some("host")), "it runs in the network of host"),
            (
                Why::Exposed { port: 5432, on: "0.0.0.0".into() },
                "publishes 5432/tcp on 0.0.0.0, which is not loopback-only",
            ),
            (Why::Elsewhere { port: 80, on: "192.0.2.7".into() }, "on 192.0.2.7 only, which 127.0.0.1 does not reach"),
            (Why::BadPort("x".into()), ", which is not a port"),
            (Why::Superseded { by: text(), id: text() }, "is superseded by /"),
            (Why::NameTaken { owner: text() }, "is already owned by "),
            (Why::EngineElsewhere(text()), "is published on the host of its engine "),
            (Why::NotInspected(text()), "could not be inspected: "),
            (Why::Withheld, "and containers of this host may not ask for that"),
        ];
        for (why, words) in kinds {
            let refusal = Refusal::of(&Container::default(), "s", why);
            assert!(refusal.reason().contains(words), "{}", refusal.reason());
            let told = words.replace("80/tcp", "5432/tcp");
            assert!(page.contains(&told), "{told}");
        }
        for key in crate::docker::labels::KEYS {
            assert!(page.contains(&format!("| `io.devmesh.{key}` |")), "{key}");
        }
    }
}
