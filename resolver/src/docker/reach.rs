//! How what an engine publishes is reached from here: an engine on another host publishes on that host's loopback.
use super::claims::Verdict;
use super::container::Container;
use super::endpoint::Endpoint;
use super::refusal::{Refusal, Why};
use super::transport::target;
use stado_fleet::directory::Route;
use stado_fleet::link::single_path;
use stado_fleet::name::{ConnectionPath, Endpoint as ServiceEndpoint, LogicalName, Scheme, TargetName};
use std::sync::Arc;

/// How containers of an engine are reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// On this machine's loopback.
    #[default]
    Here,
    /// Over SSH, on the loopback of the engine's host.
    Ssh {
        /// Name that sessions to it are pooled under.
        host: TargetName,
        /// The way.
        paths: Vec<ConnectionPath>,
    },
    /// Not at all; the engine's address.
    Nowhere(String),
}

impl Reach {
    /// How containers of the engine at `endpoint` are reached.
    pub fn of(endpoint: &Endpoint) -> Self {
        match endpoint {
            here if here.is_here() => Self::Here,
            Endpoint::Ssh(destination) => match target(destination) {
                Ok(host) => Self::Ssh { host, paths: single_path(destination.clone()) },
                Err(_) => Self::Nowhere(endpoint.to_string()),
            },
            elsewhere => Self::Nowhere(elsewhere.to_string()),
        }
    }

    /// Puts the way into every claim, or refuses what has none.
    pub(super) fn apply(&self, container: &Container, mut verdict: Verdict) -> Verdict {
        match self {
            Self::Here => {}
            Self::Ssh { host, paths } => {
                for claim in &mut verdict.claims {
                    claim.backend.via = self.route(host, paths, claim.name.as_str(), &claim.backend.addr).map(Arc::new);
                }
            }
            Self::Nowhere(engine) => {
                let claims = std::mem::take(&mut verdict.claims);
                let refuse = |name: &str| Refusal::of(container, name, Why::EngineElsewhere(engine.clone()));
                verdict.refused.extend(claims.iter().map(|claim| refuse(claim.name.as_str())));
            }
        }
        verdict
    }

    fn route(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        name: &str,
        addr: &stado_fleet::name::LoopbackAddr,
    ) -> Option<Route> {
        Some(Route {
            service: name.parse::<LogicalName>().ok()?,
            active_host: host.clone(),
            endpoint: ServiceEndpoint { scheme: Scheme::Tcp, addr: *addr },
            capabilities: Vec::new(),
            paths: paths.into(),
            local: false,
            stado_command: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docker::claims::judge;
    use crate::docker::container::{Binding, Phase};

    fn container() -> Container {
        let labels = [("enable", "true"), ("name", "it.db"), ("container-port", "80")];
        Container {
            name: "db".into(),
            phase: Phase::Running,
            labels: labels.iter().map(|(k, v)| (format!("io.devmesh.{k}"), (*v).to_owned())).collect(),
            ports: [("80/tcp".to_owned(), vec![Binding { ip: "127.0.0.1".into(), port: "9".into() }])].into(),
            ..Container::default()
        }
    }

    fn applied(endpoint: &str) -> Verdict {
        Reach::of(&endpoint.parse().unwrap()).apply(&container(), judge(&container(), false))
    }

    #[test]
    fn a_local_engine_is_dialled_and_one_behind_ssh_over_its_host() {
        assert_eq!(applied("unix:///x").claims[0].backend.via, None);
        let far = applied("ssh://me@box:2222");
        let route = far.claims[0].backend.via.clone().unwrap();
        assert_eq!((route.endpoint.to_string().as_str(), route.local), ("tcp://127.0.0.1:9", false));
        assert_eq!(route.paths[0].destination.to_string(), "me@box:2222");
    }

    #[test]
    fn what_an_engine_elsewhere_publishes_is_refused_with_its_address() {
        let far = applied("tcp://10.0.0.5:2375");
        assert!(far.claims.is_empty());
        assert!(far.refused[0].reason().contains("its engine tcp://10.0.0.5:2375"), "{far:?}");
        assert!(far.refused[0].remedy().contains("ssh://"));
    }
}
