//! A stream whose backend speaks HTTP/1.1, in clear or over TLS.
use super::super::framing::Framing;
use super::super::upstream::{Reached, kept, reach};
use super::super::{far::Far, page::Problem};
use super::exchange::{Count, Exchange, Failed};
use super::source::{Answer, Source};
use super::upload::{Upload, Uploaded};
use super::{asked, head1, until_reset};
use crate::conn::ledger::Seen;
use std::io;
use tokio::io::split;
use tokio::sync::oneshot;

/// Leads the exchange to its end. A request that the backend may have acted on is never sent twice (proxy rule 16).
pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<(), Failed> {
    let framing = match exchange.upgrade {
        Some(_) => Framing::None,
        None => head1::framing(&exchange.request, exchange.ended)?,
    };
    if exchange.upgrade.is_some() {
        exchange.add_key();
    }
    let harmless = exchange.upgrade.is_none() && asked::is_idempotent(exchange.request.method());
    let mut upload = Upload::new(exchange.head(framing), framing, harmless);
    let mut fresh = exchange.upgrade.is_some();
    loop {
        exchange.entry.opening();
        let surely = !(harmless && exchange.ended);
        let kept = if fresh { None } else { kept(exchange.site, exchange.ctx, surely) };
        let reached = match kept {
            Some(reached) => reached,
            None => {
                let reaching = reach(exchange.site, exchange.ctx);
                let reached = until_reset(&mut exchange.respond, reaching).await.ok_or(Failed::ClientLeft)?;
                reached.map_err(|error| exchange.unreached(&error))?
            }
        };
        exchange.entry.opened();
        exchange.entry.up(Seen::Bytes(upload.held()));
        let used = reached.used && !fresh;
        match attempt(exchange, reached, &mut upload).await {
            Err(Failed::Silent(_)) if used && upload.can_repeat() => fresh = true,
            done => return done,
        }
    }
}

/// One try on one connection.
async fn attempt(exchange: &mut Exchange<'_>, reached: Reached, upload: &mut Upload) -> Result<(), Failed> {
    let Reached { far, key, .. } = reached;
    let (read, mut write) = split(far);
    let mut source = Source::new(read, exchange.ctx);
    let result = both(exchange, &mut source, &mut write, upload).await;
    let (read, stray) = source.into_parts();
    let far: Far = read.unsplit(write);
    match result {
        Ok(true) if !stray => {
            if let Some(key) = key {
                exchange.ctx.pool.give(key, exchange.site, far, &exchange.ctx.conn);
            }
            Ok(())
        }
        Ok(_) => Ok(()),
        // The backend learns at once that nobody waits any more (proxy rule 15).
        Err(failed @ (Failed::ClientLeft | Failed::Malformed)) => {
            far.reset();
            Err(failed)
        }
        Err(other) => Err(other),
    }
}

type Write = tokio::io::WriteHalf<Far>;

/// Both directions at once: an answer that comes during an upload is the answer (proxy rule 14). Whether the connection can
/// be used again.
async fn both(
    exchange: &mut Exchange<'_>,
    source: &mut Source,
    write: &mut Write,
    upload: &mut Upload,
) -> Result<bool, Failed> {
    let (open, opened) = exchange.upgrade.as_ref().map(|_| oneshot::channel()).unzip();
    let tunnels = opened.is_some();
    let Exchange { body, respond, request, count, entry, ctx, malformed, .. } = exchange;
    let patience = ctx.limits.unread;
    let (mut uploaded, mut answered) = (None, None);
    let mut answer =
        Answer { source, respond, method: request.method(), tunnel: open, entry, bytes_out: 0, status: 0, patience };
    let result = {
        let mut uploading = std::pin::pin!(upload.run(body, write, opened, malformed));
        let mut answering = std::pin::pin!(answer.run());
        loop {
            tokio::select! {
                done = &mut uploading, if uploaded.is_none() => match (done, answered.take()) {
                    (Uploaded::ClientLeft, _) => break Err(Failed::ClientLeft),
                    (Uploaded::Malformed, _) => break Err(Failed::Malformed),
                    (_, Some(done)) => break done,
                    (done, None) => uploaded = Some(done),
                },
                done = &mut answering, if answered.is_none() => match done {
                    // A half-close of the backend leaves the client's direction open (proxy rule 5).
                    Ok(_) if tunnels && uploaded.is_none() => answered = Some(done),
                    done => break done,
                },
            }
        }
    };
    *count = Count { status: answer.status, bytes_in: upload.bytes_in, bytes_out: answer.bytes_out };
    answer.entry.up(Seen::Count(usize::try_from(upload.bytes_in).unwrap_or(usize::MAX)));
    result.map(|persists| persists && matches!(uploaded, Some(Uploaded::Whole)))
}

/// What an error of a connection is called where a person reads it.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the backend closed the connection without an answer".to_owned(),
        io::ErrorKind::ConnectionReset => "the backend reset the connection".to_owned(),
        _ => error.to_string(),
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Ours(problem)
    }
}
