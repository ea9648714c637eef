//! How long a connection may stay without a request. Set up once a connection: resting must not cost every request a timer.
use crate::http::HttpContext;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// An alarm that asks, when it rings, whether it is late enough, and the router's end.
pub(super) struct Rest {
    alarm: Pin<Box<Sleep>>,
    parted: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Rest {
    pub(super) fn new(context: &HttpContext, end: Instant) -> Self {
        Self { alarm: Box::pin(sleep_until(end)), parted: Box::pin(context.parted()) }
    }

    /// Ready at `end`, or, if `parts`, when the router ends.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, end: Instant, parts: bool) -> Poll<()> {
        if parts && self.parted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if end < self.alarm.deadline() {
            self.alarm.as_mut().reset(end);
        }
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            if self.alarm.deadline() >= end {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(end);
        }
    }
}
