//! A stream whose backend speaks HTTP/2: nothing of it is taken apart.
use super::super::framing::Framing;
use super::body::{self, Broken};
use super::exchange::{Exchange, Failed};
use super::session::Unreached;
use super::taken::Taken;
use super::{asked, fields, until_reset};
use crate::conn::ledger::{Entry, Seen};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// Leads the exchange to its end. It is begun once more where the backend says that it has not been looked at, and where
/// that does no harm (proxy rule 16).
pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<(), Failed> {
    let seen = exchange.head(Framing::None);
    asked::onward(&mut exchange.request, &exchange.asked.authority)?;
    let (mut fresh, mut taken) = (false, Taken::default());
    loop {
        exchange.entry.opening();
        let taking = exchange.ctx.sessions.take(exchange.site, exchange.ctx, fresh);
        let lease = until_reset(&mut exchange.respond, taking).await.ok_or(Failed::ClientLeft)?;
        let lease = match lease {
            Ok(lease) => lease,
            Err(Unreached::Dial(error)) => return Err(exchange.unreached(&error)),
            Err(Unreached::Silent(cause)) => return Err(Failed::Silent(cause)),
        };
        exchange.entry.opened();
        exchange.entry.up(Seen::Bytes(&seen));
        match attempt(exchange, lease.send.clone(), &mut taken).await {
            Err(Lost::Untouched(_)) if !fresh => fresh = true,
            Err(Lost::Untouched(cause)) => return Err(Failed::Silent(format!("HTTP/2: {cause}"))),
            Err(Lost::Failed(failed)) => return Err(failed),
            Ok(()) => return Ok(()),
        }
    }
}

/// How a try failed.
pub(super) enum Lost {
    /// It may be tried again.
    Untouched(String),
    Failed(Failed),
}
impl From<Failed> for Lost {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

async fn attempt(exchange: &mut Exchange<'_>, sender: SendRequest<Bytes>, taken: &mut Taken) -> Result<(), Lost> {
    let mut sender = match until_reset(&mut exchange.respond, sender.ready()).await.ok_or(Failed::ClientLeft)? {
        Ok(sender) => sender,
        Err(error) => return Err(Lost::Untouched(error.to_string())),
    };
    if exchange.upgrade.is_some() && !sender.is_extended_connect_protocol_enabled() {
        return Err(Failed::odd("the backend takes no WebSockets over HTTP/2 (RFC 8441)").into());
    }
    let sent = sender.send_request(exchange.request.clone(), exchange.ended);
    let (response, up) = sent.map_err(|error| Lost::Untouched(error.to_string()))?;
    let result = both(exchange, response, up, taken).await;
    match result {
        Err(Failure { failed: None, error: Some(error) }) => {
            let harmless = asked::is_idempotent(exchange.request.method());
            Err(judge(&error, taken.can_repeat(), harmless))
        }
        Err(Failure { failed: Some(failed), .. }) => Err(failed.into()),
        _ => Ok(()),
    }
}

struct Failure {
    failed: Option<Failed>,
    /// Before any byte of an answer.
    error: Option<h2::Error>,
}
impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self { failed: Some(failed), error: None }
    }
}

/// What an error before the answer means for a request. `repeatable`: all of it that was sent is held. `harmless`: twice does
/// what once does.
pub(super) fn judge(error: &h2::Error, repeatable: bool, harmless: bool) -> Lost {
    let reset = error.is_remote() && error.is_reset();
    let refused = reset && error.reason() == Some(Reason::REFUSED_STREAM)
        || error.is_remote() && error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    match error.reason() {
        _ if repeatable && (refused || (harmless && !reset)) => Lost::Untouched(error.to_string()),
        Some(reason) if reset => Failed::Reset(reason).into(),
        _ => Failed::Silent(format!("HTTP/2: {error}")).into(),
    }
}

/// Both directions at once.
async fn both(
    exchange: &mut Exchange<'_>,
    response: ResponseFuture,
    mut up: SendStream<Bytes>,
    taken: &mut Taken,
) -> Result<(), Failure> {
    let Exchange { body, respond, count, ended, entry, ctx, upgrade, malformed, .. } = exchange;
    let (mut status, mut bytes_out) = (0, 0);
    // What has become another protocol's is nobody's answer.
    let patience = if upgrade.is_some() { Duration::MAX } else { ctx.limits.unread };
    let result = {
        let mut uploading =
            std::pin::pin!(async { if *ended { Ok(()) } else { taken.pump(body, &mut up, malformed).await } });
        let mut answering = std::pin::pin!(answer(response, respond, entry, (&mut status, &mut bytes_out), patience));
        let (mut uploaded, mut answered) = (false, false);
        loop {
            tokio::select! {
                done = &mut uploading, if !uploaded => match done {
                    Err(Broken::Source(_)) => break Err(Failed::ClientLeft.into()),
                    Err(Broken::Malformed) => break Err(Failed::Malformed.into()),
                    _ if answered => break Ok(()),
                    _ => uploaded = true,
                },
                done = &mut answering, if !answered => match done {
                    // What is still coming from the client is the backend's as long as it takes it.
                    Ok(()) if !uploaded => answered = true,
                    done => break done,
                },
            }
        }
    };
    (count.bytes_in, count.status, count.bytes_out) = (taken.bytes, status, bytes_out);
    entry.up(Seen::Count(usize::try_from(taken.bytes).unwrap_or(usize::MAX)));
    entry.down(Seen::Count(usize::try_from(bytes_out).unwrap_or(usize::MAX)));
    if let Err(Failure { failed: Some(Failed::ClientLeft), .. }) = &result {
        up.send_reset(Reason::CANCEL);
    }
    result
}

async fn answer(
    response: ResponseFuture,
    respond: &mut SendResponse<Bytes>,
    entry: &mut Entry,
    (status, bytes_out): (&mut u16, &mut u64),
    patience: Duration,
) -> Result<(), Failure> {
    let response = head(response, respond).await?;
    entry.down(Seen::Count(0));
    let (mut parts, mut body) = response.into_parts();
    fields::answer(&mut parts.headers);
    *status = parts.status.as_u16();
    let ended = body.is_end_stream();
    let sent = respond.send_response(Response::from_parts(parts, ()), ended).map_err(|_| Failed::ClientLeft)?;
    if ended {
        return Ok(());
    }
    let mut down = sent;
    match body::pump(&mut body, &mut down, bytes_out, patience).await {
        Ok(()) => Ok(()),
        Err(Broken::Source(reason)) => {
            Err(Failed::Broken(format!("the backend broke its answer off ({reason})")).into())
        }
        Err(Broken::Sink(_) | Broken::Malformed) => Err(Failed::ClientLeft.into()),
    }
}

/// The final head; what comes before it is passed on.
async fn head(
    mut response: ResponseFuture,
    respond: &mut SendResponse<Bytes>,
) -> Result<Response<h2::RecvStream>, Failure> {
    let failed = |error| Failure { failed: None, error: Some(error) };
    loop {
        match until_reset(respond, next_head(&mut response)).await.ok_or(Failed::ClientLeft)?.map_err(failed)? {
            Head::Final(response) => return Ok(response),
            Head::Early(mut early) => {
                fields::answer(early.headers_mut());
                respond.send_informational(early).map_err(|_| Failed::ClientLeft)?;
            }
        }
    }
}

/// A head of an answer.
pub(super) enum Head {
    /// A 1xx.
    Early(Response<()>),
    Final(Response<h2::RecvStream>),
}

/// The next one.
pub(super) async fn next_head(response: &mut ResponseFuture) -> Result<Head, h2::Error> {
    poll_fn(|cx| {
        if let Poll::Ready(Some(early)) = response.poll_informational(cx) {
            return Poll::Ready(early.map(Head::Early));
        }
        std::pin::Pin::new(&mut *response).poll(cx).map(|done| done.map(Head::Final))
    })
    .await
}
