//! One direction of a stream's body, from an HTTP/2 side to an HTTP/2 side: what is not yet taken by the one is not yet
//! granted to the other, so that no body is held here.
use super::screen::Malformed;
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A body that ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The side that sends it reset the stream, or its connection broke.
    Source(Reason),
    /// The side that takes it no longer does.
    Sink(Reason),
    /// It ends in trailers that are none.
    Malformed,
}

/// The reason that is passed on for an error of either side.
pub(super) fn reason(error: &h2::Error) -> Reason {
    error.reason().unwrap_or(Reason::CANCEL)
}

/// The trailers of a client's body, but for what must not come late; empty where there are none.
pub(super) async fn trailers(from: &mut RecvStream, malformed: &Malformed) -> Result<HeaderMap, Broken> {
    match from.trailers().await {
        Ok(Some(_)) if malformed.take(from.stream_id().as_u32()) => Err(Broken::Malformed),
        Ok(trailers) => {
            let mut trailers = trailers.unwrap_or_default();
            super::fields::late(&mut trailers);
            Ok(trailers)
        }
        Err(error) => Err(Broken::Source(reason(&error))),
    }
}

/// Of an answer: what comes of it next. A backend that answers before it has read the request may end that with a reset that
/// is no error; the answer stands (RFC 9113 §8.1).
pub(super) fn unless_early<T>(next: Option<Result<T, h2::Error>>) -> Result<Option<T>, h2::Error> {
    match next {
        Some(Err(error)) if error.is_reset() && error.reason() == Some(Reason::NO_ERROR) => Ok(None),
        next => next.transpose(),
    }
}

fn unless_over(next: Result<Option<Bytes>, Broken>) -> Result<Option<Bytes>, Broken> {
    match next {
        Err(Broken::Source(Reason::NO_ERROR)) => Ok(None),
        next => next,
    }
}

/// Moves the whole body of an answer and its trailers; a break is passed on as a reset with its reason. `moved` counts bytes, `patience`
/// is that of [`send`].
pub(super) async fn pump(
    from: &mut RecvStream,
    to: &mut SendStream<Bytes>,
    moved: &mut u64,
    patience: Duration,
) -> Result<(), Broken> {
    let result = data(from, to, moved, patience).await;
    if let Err(Broken::Source(why)) = result {
        reset_behind(to, why, patience).await;
    }
    result
}

async fn data(
    from: &mut RecvStream,
    to: &mut SendStream<Bytes>,
    moved: &mut u64,
    patience: Duration,
) -> Result<(), Broken> {
    while let Some(bytes) = unless_over(next(from, to).await)? {
        let length = bytes.len();
        let last = from.is_end_stream();
        send(to, bytes, last, patience).await?;
        *moved += length as u64;
        // A source that is gone needs no window.
        let _ = from.flow_control().release_capacity(length);
        if last {
            return Ok(());
        }
    }
    match unless_early(from.trailers().await.transpose()).map_err(|error| Broken::Source(reason(&error)))? {
        Some(mut trailers) => {
            super::fields::late(&mut trailers);
            end(to, trailers)
        }
        None => to.send_data(Bytes::new(), true).map_err(|error| Broken::Sink(reason(&error))),
    }
}

/// The next piece, unless the taker leaves first.
pub(super) async fn next(from: &mut RecvStream, to: &mut SendStream<Bytes>) -> Result<Option<Bytes>, Broken> {
    poll_fn(|cx| {
        if let Poll::Ready(data) = from.poll_data(cx) {
            return Poll::Ready(data.transpose().map_err(|error| Broken::Source(reason(&error))));
        }
        left(to, cx).map(Err)
    })
    .await
}

fn left(to: &mut SendStream<Bytes>, cx: &mut std::task::Context<'_>) -> Poll<Broken> {
    to.poll_reset(cx).map(|why| Broken::Sink(why.unwrap_or_else(|error| reason(&error))))
}

/// Sends one piece as the taker's window allows. One that opens no window for as long as `patience` has its stream reset:
/// whoever sends the body is not held for ever.
pub(super) async fn send(
    to: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    last: bool,
    patience: Duration,
) -> Result<(), Broken> {
    let failed = |error: h2::Error| Broken::Sink(reason(&error));
    if bytes.is_empty() {
        return if last { to.send_data(bytes, true).map_err(failed) } else { Ok(()) };
    }
    while !bytes.is_empty() {
        to.reserve_capacity(bytes.len());
        let granting = poll_fn(|cx| {
            if let Poll::Ready(why) = left(to, cx) {
                return Poll::Ready(Err(why));
            }
            // Only what is added is told: what is there already has to be asked for.
            if to.capacity() > 0 {
                return Poll::Ready(Ok(to.capacity()));
            }
            match to.poll_capacity(cx) {
                Poll::Ready(Some(Ok(granted))) => Poll::Ready(Ok(granted)),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Err(Broken::Sink(reason(&error)))),
                Poll::Ready(None) => Poll::Ready(Err(Broken::Sink(Reason::CANCEL))),
                Poll::Pending => Poll::Pending,
            }
        });
        let Ok(granted) = timeout(patience, granting).await else {
            to.send_reset(Reason::CANCEL);
            return Err(Broken::Sink(Reason::CANCEL));
        };
        let granted = granted?;
        if granted == 0 {
            continue;
        }
        let piece = bytes.split_to(granted.min(bytes.len()));
        let last = last && bytes.is_empty();
        to.send_data(piece, last).map_err(failed)?;
    }
    Ok(())
}

/// Resets the stream behind all that was sent on it: a reset drops what the engine has not written yet. A taker that lets
/// nothing be written for as long as `patience` loses it.
pub(super) async fn reset_behind(to: &mut SendStream<Bytes>, why: Reason, patience: Duration) {
    // The engine drops a frame of no bytes when it has written it, which is after all others of the stream.
    let (mark, written) = oneshot::channel::<()>();
    if to.send_data(Bytes::from_owner(Mark { _written: mark }), false).is_ok() {
        let _ = timeout(patience, unless_left(to, written)).await;
    }
    to.send_reset(why);
}

/// No bytes; whoever waits for its end learns of it.
struct Mark {
    _written: oneshot::Sender<()>,
}
impl AsRef<[u8]> for Mark {
    fn as_ref(&self) -> &[u8] {
        &[]
    }
}

/// Ends the body with trailers; none that is left ends it as well.
pub(super) fn end(to: &mut SendStream<Bytes>, trailers: HeaderMap) -> Result<(), Broken> {
    let ended = if trailers.is_empty() { to.send_data(Bytes::new(), true) } else { to.send_trailers(trailers) };
    ended.map_err(|error| Broken::Sink(reason(&error)))
}

/// `work`, unless the taker leaves first.
pub(super) async fn unless_left<T>(to: &mut SendStream<Bytes>, work: impl Future<Output = T>) -> Result<T, Broken> {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        left(to, cx).map(Err)
    })
    .await
}
