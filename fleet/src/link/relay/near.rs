//! The near side: one multiplex over one exec channel, shared by all streams to a host.
use super::facts::{Facts, Guard};
use super::gather::Gather;
use super::preamble::{self, NoMultiplex};
use super::refusal::Refusal;
use super::rtt::{self, Meter};
use super::stream::MuxStream;
use super::{CONNECTION_WINDOW, Code, FRAME, RESETS, SEND_BUFFER, STREAM_WINDOW, STREAMS, TO_ONE};
use crate::link::config::Timing;
use crate::link::handler::lock;
use crate::link::session::Session;
use crate::link::stream::ChannelStream;
use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::{Method, Request, StatusCode};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::timeout;

/// Why no stream was opened.
pub(in crate::link) enum OpenError {
    /// The multiplex is gone or mute; nothing of the client went up.
    Lost,
    /// The far side's answer.
    Refused(Refusal),
}

/// A multiplex that stands. It ends with its last holder: streams hold it too.
pub(in crate::link) struct Multiplex {
    requests: SendRequest<Bytes>,
    pub(in crate::link) session: Arc<Session>,
    pub(super) facts: Arc<Facts>,
    /// What a login script said before it, quoted.
    pub(in crate::link) chatter: Option<String>,
}

impl std::fmt::Debug for Multiplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Multiplex").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Multiplex {
    /// Over a command that runs: preamble, then frames. `channel` belongs to `session`.
    pub(in crate::link) async fn start(
        mut channel: ChannelStream,
        session: Arc<Session>,
        timing: &Timing,
    ) -> Result<Arc<Self>, NoMultiplex> {
        let met = match timeout(timing.preamble, preamble::near(&mut channel)).await {
            Ok(met) => met,
            Err(_) => Err(NoMultiplex(format!("nothing came within {}s", timing.preamble.as_secs_f64()))),
        };
        let (_, chatter) = match met {
            Ok(met) => met,
            Err(NoMultiplex(why)) => return Err(NoMultiplex(why + &channel.complaint().await)),
        };
        let mut builder = h2::client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .initial_max_send_streams(STREAMS as usize)
            .max_concurrent_reset_streams(RESETS)
            .max_local_error_reset_streams(None)
            .max_send_buffer_size(SEND_BUFFER);
        let channel = Gather::new(channel);
        let facts = Arc::new(Facts::new(channel.received()));
        let shaken = builder.handshake(channel).await;
        let (requests, connection) = shaken.map_err(|e| NoMultiplex(format!("the relay there ended: {e}")))?;
        tokio::spawn(drive(connection, facts.clone()));
        Ok(Arc::new(Self { requests, session, facts, chatter }))
    }

    /// Opens a stream to `endpoint`, which the far side judges and dials.
    pub(in crate::link) async fn open(
        self: &Arc<Self>,
        endpoint: SocketAddr,
        timing: &Timing,
    ) -> Result<MuxStream, OpenError> {
        let guard = Guard::new(self.clone(), endpoint);
        if self.facts.streams_to(endpoint) > TO_ONE {
            let why = format!("{TO_ONE} streams from this host to {endpoint} are open already");
            return Err(OpenError::Refused(Refusal::new(Code::NoRoom, why)));
        }
        let mut requests = self.requests.clone();
        std::future::poll_fn(|cx| requests.poll_ready(cx)).await.map_err(|_| OpenError::Lost)?;
        let mut request = Request::new(());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = endpoint.to_string().parse().map_err(|_| OpenError::Lost)?;
        let (answer, send) = requests.send_request(request, false).map_err(|_| OpenError::Lost)?;
        match self.answers(timing, answer).await {
            Some(Ok(answer)) if answer.status() == StatusCode::OK => {
                Ok(MuxStream::new(send, answer.into_body(), guard))
            }
            Some(Ok(answer)) => Err(OpenError::Refused(Refusal::read(&answer))),
            Some(Err(_)) | None => Err(OpenError::Lost),
        }
    }

    /// Waits for what the relay shall answer; `None` when the relay turns out to be dead or stopped, or its session. It is
    /// asked for a sign of life when nothing at all has come from it for a while.
    async fn answers<T>(&self, timing: &Timing, answer: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(answer);
        loop {
            let before = self.facts.received();
            if let Ok(answer) = timeout(timing.probe, &mut answer).await {
                return Some(answer);
            }
            if self.facts.received() > before {
                continue;
            }
            tokio::select! {
                answer = &mut answer => return Some(answer),
                alive = self.facts.probe(timing.probe) => if !alive { return None },
            }
        }
    }

    /// Whether no stream can be opened any more.
    pub(in crate::link) fn has_ended(&self) -> bool {
        self.facts.ended.is_cancelled() || self.session.retired.is_cancelled() || self.session.has_ended()
    }

    /// Waits until [`Multiplex::has_ended`].
    pub(in crate::link) async fn ended(&self) {
        tokio::select! {
            () = self.facts.ended.cancelled() => {}
            () = self.session.retired.cancelled() => {}
            () = self.session.facts.end.cancelled() => {}
        }
    }

    /// Streams that are open or opening.
    pub(in crate::link) fn streams(&self) -> usize {
        self.facts.streams()
    }

    /// How long there has been no stream; `None` while there is one.
    pub(in crate::link) fn idle(&self) -> Option<Duration> {
        self.facts.idle()
    }

    /// The round trip, once measured.
    pub(in crate::link) fn rtt(&self) -> Option<Duration> {
        Some(self.facts.rtt.load(Ordering::Relaxed)).filter(|us| *us > 0).map(Duration::from_micros)
    }

    /// The sentence for streams that a lost multiplex takes with it.
    pub(in crate::link) fn lost(&self) -> String {
        if self.session.has_ended() {
            return self.session.lost();
        }
        let why = lock(&self.facts.why).clone().unwrap_or_else(|| "it ended".into());
        format!("the relay on {} was lost: {why}", self.session.destination)
    }
}

/// Carries the frames and measures the round trip until the connection ends.
async fn drive(mut connection: Connection<Gather<ChannelStream>, Bytes>, facts: Arc<Facts>) {
    let _ended = facts.ended.clone().drop_guard();
    let mut meter = Meter::new(connection.ping_pong());
    let mut again = tokio::time::interval(rtt::BETWEEN);
    let result = std::future::poll_fn(|cx| {
        if let Some(window) = meter.poll(cx, &facts.pace) {
            // Refused while an earlier change is not confirmed: then the next measurement does it.
            let _ = connection.set_initial_window_size(window);
            let us = meter.best.map_or(0, |best| best.as_micros().max(1));
            facts.rtt.store(u64::try_from(us).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        if facts.poll_asked(cx) {
            meter.ask();
        }
        meter.poll_pace(cx, &facts.pace);
        if again.poll_tick(cx).is_ready() {
            // Registers the timer for its next tick.
            let _ = again.poll_tick(cx);
            meter.ask();
        }
        Pin::new(&mut connection).poll(cx)
    })
    .await;
    if let Err(error) = result {
        *lock(&facts.why) = Some(error.to_string());
    }
    facts.pace.over();
}
