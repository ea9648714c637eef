//! A service on another host.
use super::{Asker, DialError};
use stado_fleet::directory::Route;
use stado_fleet::fault::Class;
use stado_fleet::link::{Link, LinkError, RemoteStream, Stage};
use std::pin::Pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// What [`Dialer::open`] returns.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Pin<Box<dyn RemoteStream>>, LinkError>> + Send + 'a>>;

/// Opens streams to other hosts; [`Link`] in the daemon, a fake in tests.
pub trait Dialer: Send + Sync + std::fmt::Debug {
    /// Opens `route` within `budget`.
    fn open<'a>(&'a self, route: &'a Route, budget: Duration) -> Opening<'a>;

    /// Where the streams of `route` are best copied, when that is not where their frontend was started.
    fn runtime(&self, _route: &Route) -> Option<Handle> {
        None
    }
}

/// The link's own end of the budget comes first: it knows why.
const EARLIER: Duration = Duration::from_millis(100);

impl Dialer for Link {
    fn open<'a>(&'a self, route: &'a Route, budget: Duration) -> Opening<'a> {
        Box::pin(async move {
            let budget = budget.saturating_sub(EARLIER);
            let mut refused = None;
            // `localhost` on the other host is tried on both families there, as it is here.
            for endpoint in route.endpoint.addr.candidates() {
                let command = route.stado_command.as_deref();
                match self.relay(&route.active_host, &route.paths, command, endpoint, budget).await {
                    Err(error) if matches!(error.stage, Stage::Open | Stage::Service) => {
                        refused = refused.or(Some(error))
                    }
                    other => return other,
                }
            }
            Err(refused.unwrap_or_else(|| no_way("the route names no endpoint")))
        })
    }

    fn runtime(&self, route: &Route) -> Option<Handle> {
        Self::runtime(self, &route.active_host)
    }
}

/// The dialer of a daemon without a fleet: every route is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFleet;
impl Dialer for NoFleet {
    fn open<'a>(&'a self, _route: &'a Route, _budget: Duration) -> Opening<'a> {
        Box::pin(std::future::ready(Err(no_way(
            "this daemon serves the mesh of this host alone and reaches no other host",
        ))))
    }
}

fn no_way(sentence: &str) -> LinkError {
    LinkError { stage: Stage::Connect, sentence: sentence.to_owned(), class: Class::Config }
}

/// Opens `route` within the frontend's budget.
pub(super) async fn open(route: &Route, asker: &Asker<'_>) -> Result<Pin<Box<dyn RemoteStream>>, DialError> {
    let host = || route.active_host.to_string();
    match timeout(asker.budget, asker.dialer.open(route, asker.budget)).await {
        Ok(opened) => opened.map_err(|error| DialError::Link { host: host(), error }),
        Err(_) => Err(DialError::Unanswered { host: host(), budget: asker.budget }),
    }
}
