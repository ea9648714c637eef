//! The real engine, through bollard.
use super::container::Container;
use super::convert;
use super::endpoint::Endpoint;
use super::engine::{About, Answer, Connect, Engine, EngineError, Event, Listed};
use super::labels::ENABLE;
use super::locate::Lookup;
use super::reach::Reach;
use super::transport::Transport;
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{EventsOptionsBuilder, InspectContainerOptions, ListContainersOptionsBuilder};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use stado_fleet::fault::Class;
use stado_fleet::link::Link;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Finds and connects the real engine.
#[derive(Debug, Clone)]
pub struct RealEngines {
    /// Where to look.
    pub lookup: Lookup,
    /// The way to `ssh://` engines, when the daemon has one.
    pub link: Option<Link>,
    /// Deadline of each call.
    pub call: Duration,
}

impl Connect for RealEngines {
    fn connect(&self) -> Answer<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let engine = connect(self.lookup.find()?, self.link.clone(), self.call).await?;
            Ok(Arc::new(engine) as Arc<dyn Engine>)
        })
    }

    fn place(&self) -> String {
        self.lookup.find().map_or_else(|error| error.to_string(), |endpoint| endpoint.to_string())
    }
}

/// Connects to the engine at `endpoint` and asks what it is.
pub(super) async fn connect(endpoint: Endpoint, link: Option<Link>, call: Duration) -> Result<RealEngine, EngineError> {
    let place = endpoint.to_string();
    let transport = Transport { endpoint: endpoint.clone(), link, deadline: call };
    let docker = transport.client().map_err(|error| explain(&endpoint, &error))?;
    let mut engine = RealEngine { docker, endpoint, call, about: About { endpoint: place, ..About::default() } };
    let version = engine.within("its version", engine.docker.version()).await?;
    engine.about.version = version.version.unwrap_or_default();
    engine.about.api = version.api_version.unwrap_or_default();
    Ok(engine)
}

/// A connected engine.
#[derive(Debug, Clone)]
pub(super) struct RealEngine {
    pub(super) docker: Docker,
    pub(super) endpoint: Endpoint,
    call: Duration,
    about: About,
}

impl RealEngine {
    pub(super) async fn within<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, EngineError> {
        match tokio::time::timeout(self.call, call).await {
            Ok(answer) => answer.map_err(|error| explain(&self.endpoint, &error)),
            Err(_) => Err(silent(&self.endpoint, what, self.call)),
        }
    }
}

impl Engine for RealEngine {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn reach(&self) -> Reach {
        Reach::of(&self.endpoint)
    }

    fn list(&self) -> Answer<'_, Vec<Listed>> {
        Box::pin(async move {
            let filters = HashMap::from([("label", vec![ENABLE])]);
            let options = ListContainersOptionsBuilder::new().filters(&filters).build();
            let all = self.within("the list of containers", self.docker.list_containers(Some(options))).await?;
            Ok(all.into_iter().filter_map(convert::listed).collect())
        })
    }

    fn inspect<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Container>> {
        Box::pin(async move {
            let call = self.docker.inspect_container(id, None::<InspectContainerOptions>);
            match tokio::time::timeout(self.call, call).await {
                Ok(Ok(answer)) => Ok(Some(convert::container(answer))),
                Ok(Err(Error::DockerResponseServerError { status_code: 404, .. })) => Ok(None),
                Ok(Err(error)) => Err(explain(&self.endpoint, &error)),
                Err(_) => Err(silent(&self.endpoint, "an inspection", self.call)),
            }
        })
    }

    fn events(&self, since: Timestamp) -> BoxStream<'static, Result<Event, EngineError>> {
        let filters = HashMap::from([("type", vec!["container", "network"])]);
        let since = format!("{}.{:09}", since.as_second(), since.subsec_nanosecond().max(0));
        let options = EventsOptionsBuilder::new().since(&since).filters(&filters).build();
        let endpoint = self.endpoint.clone();
        let events = self.docker.events(Some(options)).filter_map(move |message| {
            let event = match message {
                Ok(message) => convert::event(message).map(Ok),
                Err(error) => Some(Err(explain(&endpoint, &error))),
            };
            std::future::ready(event)
        });
        events.boxed()
    }
}

fn silent(endpoint: &Endpoint, what: &str, deadline: Duration) -> EngineError {
    let sentence = format!("the engine at {endpoint} did not answer {what} within {}s", deadline.as_secs());
    EngineError { sentence, class: Class::Timeout }
}

/// The error of a call, for people.
pub(super) fn explain(endpoint: &Endpoint, error: &Error) -> EngineError {
    let at = |class, rest: String| EngineError { sentence: format!("the engine at {endpoint} {rest}"), class };
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            at(Class::Refused, format!("answered {status_code}: {}", message.trim()))
        }
        Error::RequestTimeoutError => at(Class::Timeout, "did not answer in time".into()),
        Error::IOError { err } => match err.kind() {
            io::ErrorKind::NotFound => at(Class::InfraDown, "is not there: is one installed and running?".into()),
            io::ErrorKind::ConnectionRefused => {
                at(Class::InfraDown, "is not running: its socket is there and nobody answers".into())
            }
            io::ErrorKind::PermissionDenied => at(
                Class::Auth,
                "refuses this user: join the group of its socket (often `docker`) and log in again".into(),
            ),
            _ => at(Class::InfraDown, format!("is not reached: {err}")),
        },
        Error::HyperResponseError { err } => at(Class::InfraDown, format!("broke off: {err}")),
        other => at(Class::Unknown, format!("gave no usable answer: {other}")),
    }
}
