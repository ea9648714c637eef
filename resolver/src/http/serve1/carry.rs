//! One request through its backend and back (proxy rules 10, 14, 15 and 16).
use super::exchange::{Ended, Exchange, Failure, Progress};
use super::facts::Facts;
use super::hear::Carried;
use super::pump::Pump;
use super::unread::Unread;
use super::upgrade::Switch;
use super::{Conn, Next};
use crate::conn::ledger::{Entry, Outcome, Refusal, Seen};
use crate::conn::{Backend, DialError};
use crate::http::buffer;
use crate::http::framing::{Form, Framing};
use crate::http::h2;
use crate::http::page::Problem;
use crate::http::site::{Protocol, Site};
use crate::http::socket::Client;
use crate::http::upstream::{self, Reached};
use stado_fleet::fault::{Blame, Hop};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a client may still send the body of a request that is answered already.
const REST: Duration = Duration::from_secs(5);

impl<S: Client> Conn<S> {
    /// Carries `request` for as long as the directory allows it. A service of the mesh is nobody's to withdraw.
    pub(super) async fn carry_allowed(&mut self, request: Carried) -> Next {
        if request.site.consumer.is_none() {
            return self.carry(request).await;
        }
        let withdrawal = request.site.slot.withdrawal();
        let ended = tokio::select! {
            biased;
            () = withdrawal.withdrawn() => None,
            next = self.carry(request) => Some(next),
        };
        ended.unwrap_or_else(|| {
            self.stream.socket().reset_on_close();
            Next::Gone
        })
    }

    /// Carries `request`, or says why not.
    pub(super) async fn carry(&mut self, request: Carried) -> Next {
        let Carried { site, facts, mut pump } = request;
        if let Backend::None(reason) = &site.backend {
            site.slot.refuse(Refusal::NoBackend);
            let problem = Problem::Unavailable {
                service: site.service.to_string(),
                reason: reason.to_string(),
                since: site.since,
                hop: site.without_backend(),
            };
            return self.refuse(&site, &problem, &pump, facts).await;
        }
        let admitted = site.stats.admit(self.context.limits.service_requests);
        let conn = &self.context.conn;
        let from = (self.peer, since(self.since));
        let open = || Entry::open_since(&conn.ledger, &site.slot, &site.frontend, &site.backend, from, usize::MAX);
        let Some((place, mut entry)) = admitted.and_then(|place| Some((place, open()?))) else {
            site.slot.refuse(Refusal::Limit);
            let problem = Problem::TooMany { service: site.service.to_string() };
            return self.refuse(&site, &problem, &pump, facts).await;
        };
        let mut fresh = false;
        loop {
            let surely = !facts.is_idempotent || !pump.has_read_all();
            let kept = (!fresh).then(|| upstream::kept(&site, &self.context, surely)).flatten();
            let reached = match kept {
                Some(reached) => reached,
                None => {
                    entry.opening();
                    match Box::pin(self.reach(&site)).await {
                        Some(Ok(reached)) => reached,
                        Some(Err(error)) => return self.unreached(&site, &error, &mut entry, &pump, facts).await,
                        None => {
                            entry.end(Outcome::ClientReset, Some(Blame::Caller));
                            return Next::Gone;
                        }
                    }
                }
            };
            entry.opened();
            entry.up(Seen::Bytes(pump.out()));
            let Reached { mut far, key, used } = reached;
            let answer = Pump::new(buffer::take(), Framing::None, Form::Framed);
            let mut exchange = Exchange {
                client: &mut self.stream,
                input: &mut self.input,
                watch: &mut self.watch,
                far: &mut far,
                context: &self.context,
                entry: &mut entry,
                facts,
                request: &mut pump,
                answer,
                progress: Progress::new(),
                unread: Unread::default(),
            };
            let ended = poll_fn(|cx| exchange.poll(cx)).await;
            if matches!(ended, Ended::Whole) && exchange.progress.is_still_sending() {
                // A backend that answers early may still read what it was promised.
                let _ = timeout(REST, poll_fn(|cx| exchange.poll_up(cx))).await;
            }
            let Exchange { answer, progress, .. } = exchange;
            let (status, moved) = (progress.status, answer.moved);
            buffer::give(answer.into_memory());
            match ended {
                Ended::Whole => {
                    if let (Some(key), true) = (key, progress.far_stays()) {
                        self.context.pool.give(key, &site, far, &self.context.conn);
                    }
                    entry.end(Outcome::Done, None);
                    self.report(Some(&site), status, pump.moved, moved);
                    buffer::give(pump.into_memory());
                    return if progress.client_stays() { Next::Request } else { Next::Close };
                }
                Ended::Switched => {
                    self.report(Some(&site), status, pump.moved, moved);
                    return Next::Switch(Box::new(Switch { far, entry, site, place }));
                }
                Ended::ClientGone => {
                    far.reset();
                    entry.end(Outcome::ClientReset, Some(Blame::Caller));
                    self.report(Some(&site), status, pump.moved, moved);
                    return Next::Gone;
                }
                Ended::Unread => {
                    far.reset();
                    self.stream.socket().reset_on_close();
                    entry.end(Outcome::Cut, Some(Blame::Caller));
                    self.report(Some(&site), status, pump.moved, moved);
                    return Next::Gone;
                }
                Ended::BadRequest(why) => {
                    far.reset();
                    entry.end(Outcome::Refused(why.into()), Some(Blame::Caller));
                    if status == 0 {
                        return self.answer_for(Some(&site), &Problem::Bad { why }, Facts::unread()).await;
                    }
                    self.report(Some(&site), status, pump.moved, moved);
                    return Next::Gone;
                }
                Ended::Failed(failure) => {
                    let again = used && !failure.answered && facts.is_idempotent && pump.can_repeat();
                    if again {
                        fresh = true;
                        pump.repeat();
                        continue;
                    }
                    return self.failed(&site, failure, &mut entry, &pump, facts, (status, moved)).await;
                }
            }
        }
    }

    /// A new connection to the backend; `None` when the client is gone before it is there.
    async fn reach(&mut self, site: &Arc<Site>) -> Option<Result<Reached, DialError>> {
        let context = Arc::clone(&self.context);
        let mut reaching = pin!(async {
            match site.protocol {
                Protocol::H2c => h2::reach(site, &context).await,
                Protocol::Http1 | Protocol::Https => upstream::reach(site, &context).await,
            }
        });
        let (watch, stream, input) = (&mut self.watch, &mut self.stream, &mut self.input);
        poll_fn(|cx| {
            if let Poll::Ready(reached) = reaching.as_mut().poll(cx) {
                return Poll::Ready(Some(reached));
            }
            watch.poll_gone(cx, stream, input).map(|()| None)
        })
        .await
    }

    /// An answer of ours in place of the backend's. A request whose body is not read whole ends the connection.
    async fn refuse(&mut self, site: &Site, problem: &Problem, pump: &Pump, facts: Facts) -> Next {
        let facts = Facts { persists: facts.persists && pump.has_read_all(), framing: Framing::None, ..facts };
        self.answer_for(Some(site), problem, facts).await
    }

    async fn unreached(
        &mut self,
        site: &Site,
        error: &DialError,
        entry: &mut Entry,
        pump: &Pump,
        facts: Facts,
    ) -> Next {
        let cause = error.to_string();
        let answered = !matches!(error, DialError::Silent(..) | DialError::Unanswered { .. });
        let looped = matches!(error, DialError::Loop(_));
        let why = if looped { Refusal::Loop } else { Refusal::Unreachable };
        entry.refused(why, &cause, error.fault(), answered);
        site.stats.failed(&cause);
        let problem = match error {
            DialError::Loop(_) => Problem::Loop { host: self.host.clone() },
            _ => bad_gateway(site, cause, error.fault().1),
        };
        self.refuse(site, &problem, pump, facts).await
    }

    async fn failed(
        &mut self,
        site: &Site,
        failure: Failure,
        entry: &mut Entry,
        pump: &Pump,
        facts: Facts,
        (status, moved): (u16, u64),
    ) -> Next {
        entry.end(Outcome::ServiceReset(failure.cause.as_str().into()), Some(Blame::Service));
        site.stats.failed(&failure.cause);
        if !failure.begun {
            return self.refuse(site, &bad_gateway(site, failure.cause, Hop::Service), pump, facts).await;
        }
        self.report(Some(site), status, pump.moved, moved);
        if failure.reset {
            self.stream.socket().reset_on_close();
        }
        Next::Gone
    }
}

/// The moment on the wall clock that `instant` was.
fn since(instant: Instant) -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    now.checked_sub(instant.elapsed()).unwrap_or(now)
}

fn bad_gateway(site: &Site, cause: String, hop: Hop) -> Problem {
    let address = match &site.backend {
        Backend::Local(addr) => addr.to_string(),
        Backend::Fleet(route) => format!("{} on {}", route.endpoint.addr, route.active_host),
        Backend::None(_) => String::new(),
    };
    Problem::BadGateway { service: site.service.to_string(), address, cause, hop }
}
