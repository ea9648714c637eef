//! A connect through an adapter of this host: what its resolver has published decides whether it is tried, and says why it
//! fails (fleet contract §4.9, §6.9).
use super::look::Look;
use crate::cmd::probe::{self, Answered, Published, Unanswered};
use crate::cmd::resolver::{PULSE_LIMIT, Pulse, pulse};
use jiff::Timestamp;
use stado_fleet::document::ResolverPolicy;
use stado_fleet::ledger::{self, Publisher, ResolverState, RouteFailure, RouteState, Wait};
use stado_fleet::name::Scheme;
use stado_resolver::conn::holder_of;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// A failure is published within 100 ms; a machine that is out of breath may need this long.
const PUBLISHED: Duration = Duration::from_secs(2);

/// One adapter.
pub(super) struct Through<'a> {
    look: &'a Look,
    service: &'a str,
    consumer: &'a str,
    addr: SocketAddr,
}

impl<'a> Through<'a> {
    pub(super) fn new(look: &'a Look, service: &'a str, consumer: &'a str, addr: SocketAddr) -> Self {
        Self { look, service, consumer, addr }
    }

    /// What the running resolver says of an adapter that it does not serve: whoever accepts there is a stranger, or its
    /// refusal.
    pub(super) fn unserved(&self) -> Option<String> {
        self.publisher()?.why_unserved(self.service, self.consumer, &self.addr.to_string())
    }

    /// Tries it; the error is everything that is known.
    pub(super) async fn tried(&self, scheme: Scheme, policy: Option<&ResolverPolicy>) -> Result<Answered, String> {
        if let Some(held) = policy.and_then(|policy| self.held(policy)) {
            return Err(held);
        }
        if let Some(unserved) = self.unserved() {
            // Whoever takes a connection there is a stranger.
            let refused = TcpStream::connect(self.addr).await.err();
            return Err(refused.map_or(unserved.clone(), |refused| with(refused.to_string(), Some(unserved))));
        }
        if let Some(dead) = self.publisher().filter(|publisher| !publisher.may_run()).and_then(|p| p.dead_sentence()) {
            // The resolver's listeners went with it: whoever takes a connection there is a stranger too.
            let why = match TcpStream::connect(self.addr).await {
                Err(refused) => refused.to_string(),
                Ok(_) => {
                    let who = holder_of(self.addr).unwrap_or_else(|| "another process".to_owned());
                    format!("{who} listens there, which is not the resolver")
                }
            };
            return Err(with(why, Some(dead)));
        }
        let began = Timestamp::now();
        let since = Since { through: self, began };
        match probe::through(scheme, self.addr, &since).await {
            Err(Unanswered::Refused(why)) => Err(with(why, self.why_refused())),
            // The system takes connections for a resolver that does not run on.
            Ok(Answered::Accepted) => self.hung().await.map_or(Ok(Answered::Accepted), Err),
            Ok(answered) => Ok(answered),
            Err(Unanswered::Turned(why)) => match (self.failure_since(began).await, scheme) {
                (Some(failure), _) => Err(with(why, Some(self.failed(&failure)))),
                // The service itself may close a client that says nothing.
                (None, Scheme::Tcp) if since.reached() != Some(false) => Ok(Answered::Accepted),
                (None, _) => Err(why),
            },
            Err(Unanswered::Silent(wait)) => {
                let standing = wait.map(|wait| with(standing(&wait), self.before()));
                Err(with(probe::none(), self.hung().await.or(standing).or_else(|| self.before())))
            }
        }
    }

    /// The sentence of a held adapter; a waiting list that cannot be read is one too.
    fn held(&self, policy: &ResolverPolicy) -> Option<String> {
        let refresh = Duration::from_secs(policy.refresh_seconds);
        match ledger::waits(&self.look.fleet.host.published) {
            Err(sentence) => Some(sentence),
            Ok(waits) => {
                // A list whose publisher is gone holds nobody.
                self.publisher()?.alive()?;
                ledger::held(&waits?, self.addr, Timestamp::now(), refresh).map(|held| held.to_string())
            }
        }
    }

    fn why_refused(&self) -> Option<String> {
        let state = &self.look.fleet.host.published.state;
        self.publisher()?.why_refused(self.service, self.consumer, &self.addr.to_string(), state)
    }

    /// What the resolver has noted of a connection that failed a moment ago.
    async fn failure_since(&self, began: Timestamp) -> Option<RouteFailure> {
        self.alive()?;
        let until = Instant::now() + PUBLISHED;
        loop {
            let failure = self.row().and_then(|row| row.last_failure);
            let fresh = failure.filter(|failure| failure.at.parse::<Timestamp>().is_ok_and(|at| at >= began));
            if fresh.is_some() || Instant::now() >= until {
                return fresh;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the resolver has published of this route.
    fn row(&self) -> Option<RouteState> {
        let rows = ledger::routes(&self.look.fleet.host.published).ok()?;
        rows.into_iter().find(|row| row.service == self.service && row.consumer == self.consumer)
    }

    /// How the last connection failed, while none has reached the service since: this one may be on the way to the same end.
    fn before(&self) -> Option<String> {
        self.alive()?;
        Some(format!("before that {}", self.row()?.failing()?.sentence()))
    }

    fn failed(&self, failure: &RouteFailure) -> String {
        let pid = self.alive().map_or_else(|| "-".to_owned(), |state| state.pid.to_string());
        format!("this host's resolver (pid {pid}) did not reach the service: {}", failure.sentence())
    }

    /// The sentence of a resolver that runs and does not answer.
    async fn hung(&self) -> Option<String> {
        let state = self.alive()?;
        let bind = state.api_bind.clone()?;
        match pulse(bind.parse().ok()?, state.pid).await {
            Pulse::Silent { stopped } => Some(ledger::hung_sentence(state.pid, &bind, PULSE_LIMIT, stopped)),
            Pulse::Answers | Pulse::Refused => None,
        }
    }

    fn publisher(&self) -> Option<Publisher> {
        self.look.fleet.publisher().ok()
    }

    fn alive(&self) -> Option<ResolverState> {
        self.publisher()?.alive().cloned()
    }
}

/// What the resolver has published since a moment.
struct Since<'a> {
    through: &'a Through<'a>,
    began: Timestamp,
}

impl Published for Since<'_> {
    fn wait(&self, client: SocketAddr) -> Option<Wait> {
        let waits = ledger::waits(&self.through.look.fleet.host.published).ok()??;
        waits.into_iter().find(|wait| wait.client.as_deref() == Some(client.to_string().as_str()))
    }

    fn reached(&self) -> Option<bool> {
        // A build that names its version publishes routes.
        self.through.alive()?.version?;
        let row = self.through.row().unwrap_or_default();
        // One that does not know of probes takes this one for traffic.
        let reached = [row.last_probe_at, row.last_success_at].into_iter().flatten();
        Some(reached.filter_map(|at| at.parse::<Timestamp>().ok()).any(|at| at >= self.began))
    }

    fn api(&self) -> Option<SocketAddr> {
        self.through.publisher()?.api()
    }
}

/// What a request of this command still stands behind.
fn standing(wait: &Wait) -> String {
    let Wait { endpoint, active_host, .. } = wait;
    match wait.phase.as_str() {
        "answer" => format!(
            "the request went up an open channel to {endpoint} on {active_host}, and no byte of an answer came back"
        ),
        _ => format!("the channel to {endpoint} on {active_host} is not open yet"),
    }
}

fn with(why: String, more: Option<String>) -> String {
    match more {
        Some(more) => format!("{why}; {more}"),
        None => why,
    }
}
