//! One direction of a stream's body, from an HTTP/2 side to an HTTP/2 side: what is not yet taken by the one is not yet
//! granted to the other, so that no body is held here.
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// A body that ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The side that sends it reset the stream, or its connection broke.
    Source(Reason),
    /// The side that takes it no longer does.
    Sink(Reason),
}

/// The reason that is passed on for an error of either side.
pub(super) fn reason(error: &h2::Error) -> Reason {
    error.reason().unwrap_or(Reason::CANCEL)
}

/// Moves the whole body and its trailers; a break is passed on as a reset with its reason. `moved` counts bytes, `patience`
/// is that of [`send`].
pub(super) async fn pump(
    from: &mut RecvStream,
    to: &mut SendStream<Bytes>,
    moved: &mut u64,
    patience: Duration,
) -> Result<(), Broken> {
    let result = data(from, to, moved, patience).await;
    if let Err(Broken::Source(why)) = result {
        to.send_reset(why);
    }
    result
}

async fn data(
    from: &mut RecvStream,
    to: &mut SendStream<Bytes>,
    moved: &mut u64,
    patience: Duration,
) -> Result<(), Broken> {
    while let Some(bytes) = next(from, to).await? {
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
    match from.trailers().await.map_err(|error| Broken::Source(reason(&error)))? {
        Some(mut trailers) => {
            super::fields::late(&mut trailers);
            end(to, trailers)
        }
        None => to.send_data(Bytes::new(), true).map_err(|error| Broken::Sink(reason(&error))),
    }
}

/// The next piece, unless the taker leaves first.
async fn next(from: &mut RecvStream, to: &mut SendStream<Bytes>) -> Result<Option<Bytes>, Broken> {
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
