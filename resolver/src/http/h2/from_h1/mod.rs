//! A client that speaks HTTP/1 and a backend that speaks HTTP/2 alone. The client's exchange is given an end that speaks
//! HTTP/1.1 as any backend does; behind it is one stream of a session, and this task between the two.
mod head;
mod near;

use super::super::far::Far;
use super::super::framing::{Body, Form};
use super::super::site::Site;
use super::super::upstream::Reached;
use super::super::{HttpContext, head as heads};
use super::body::{self, Broken};
use super::session::Unreached;
use super::{asked, fields, head1 as wire};
use crate::conn::DialError;
use bytes::{Bytes, BytesMut};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
pub(in crate::http) use head::fits;
use head::{BodyAs, Onward};
use near::{Near, Said};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// What may wait between the two sides, each way.
const ROOM: usize = 64 << 10;
/// Room for one read.
const FRAME: usize = 16 << 10;

/// A stream to `site`'s backend, as an end that speaks HTTP/1.1. It carries one exchange.
pub(in crate::http) async fn reach(site: &Arc<Site>, ctx: &Arc<HttpContext>) -> Result<Reached, DialError> {
    let lease = ctx.sessions.take(site, ctx, false).await.map_err(dial_error)?;
    let (pipe, far) = duplex(ROOM);
    let said = Said::default();
    let (read, write) = split(far);
    let mut bridge =
        Bridge { site: Arc::clone(site), ctx: Arc::clone(ctx), read, held: BytesMut::new(), write, begun: false };
    let tell = said.clone();
    tokio::spawn(async move {
        if let Err(cause) = bridge.run(lease).await {
            tell.say(cause);
        } else {
            // A backend that answered early may be sent the rest of a request that it does not want.
            bridge.until_dropped().await;
        }
    });
    Ok(Reached { far: Far::Stream(Box::pin(Near { pipe, said }), None), key: None, used: false })
}

fn dial_error(unreached: Unreached) -> DialError {
    match unreached {
        Unreached::Dial(error) => error,
        Unreached::Silent(cause) => DialError::Unspoken(cause),
    }
}

/// The task's side.
struct Bridge {
    site: Arc<Site>,
    ctx: Arc<HttpContext>,
    read: ReadHalf<DuplexStream>,
    held: BytesMut,
    write: WriteHalf<DuplexStream>,
    /// Bytes of the body were taken: the request cannot be sent again from here.
    begun: bool,
}

/// Why a try failed before its answer.
enum Lost {
    /// It may be tried again.
    Untouched(String),
    /// The answer is none, or not whole; the sentence for it.
    Broken(String),
    /// The exchange has dropped its end.
    Dropped,
}

impl Bridge {
    /// The error is why the answer is none, or not whole.
    async fn run(&mut self, mut lease: super::session::Lease) -> Result<(), String> {
        let Some(head) = self.head().await else { return Ok(()) };
        let onward = Onward::read(&head, &self.ctx.hop)?;
        let mut again = true;
        loop {
            match self.attempt(&onward, &lease).await {
                Ok(()) | Err(Lost::Dropped) => return Ok(()),
                Err(Lost::Untouched(_)) if again => again = false,
                Err(Lost::Untouched(cause) | Lost::Broken(cause)) => return Err(cause),
            }
            let fresh = self.ctx.sessions.take(&self.site, &self.ctx, true).await;
            lease = fresh.map_err(|unreached| dial_error(unreached).to_string())?;
        }
    }

    /// The head that the exchange writes.
    async fn head(&mut self) -> Option<BytesMut> {
        let mut scan = heads::Scan::default();
        loop {
            // It was bounded where the client sent it; what we add to it is not counted here.
            let bounds = heads::Bounds { bytes: usize::MAX, fields: usize::MAX };
            if let Ok(Some(range)) = scan.next(&self.held, bounds) {
                return Some(self.held.split_to(range.end));
            }
            if !fill(&mut self.read, &mut self.held).await {
                return None;
            }
        }
    }

    async fn attempt(&mut self, onward: &Onward, lease: &super::session::Lease) -> Result<(), Lost> {
        let untouched = |error: h2::Error| Lost::Untouched(words(&error));
        let mut sender = lease.send.clone().ready().await.map_err(untouched)?;
        let ended = Body::new(onward.framing, Form::Parts).is_done();
        let (response, up) = sender.send_request(onward.request.clone(), ended).map_err(untouched)?;
        self.both(onward, response, up, ended).await
    }

    /// Both directions at once, until the answer is out.
    async fn both(
        &mut self,
        onward: &Onward,
        response: ResponseFuture,
        mut up: SendStream<Bytes>,
        ended: bool,
    ) -> Result<(), Lost> {
        let Self { read, held, write, begun, .. } = self;
        let result = {
            let uploading = std::pin::pin!(upload(onward, (read, held), &mut up, begun, ended));
            let answering = std::pin::pin!(answer(onward, response, write));
            tokio::select! {
                // It ends only with the exchange's end, or with a body that is none.
                () = uploading => Err(Lost::Dropped),
                done = answering => done,
            }
        };
        match result {
            Err(Lost::Untouched(cause)) if self.begun => Err(Lost::Broken(cause)),
            Err(lost @ (Lost::Broken(_) | Lost::Dropped)) => {
                up.send_reset(Reason::CANCEL);
                Err(lost)
            }
            done => done,
        }
    }

    async fn until_dropped(&mut self) {
        while fill(&mut self.read, &mut self.held).await {
            self.held.clear();
        }
    }
}

/// Sends the body on and then waits for the exchange to drop its end: returns only then, or where the body breaks off. What
/// the backend takes no more is dropped.
async fn upload(
    onward: &Onward,
    (read, held): (&mut ReadHalf<DuplexStream>, &mut BytesMut),
    up: &mut SendStream<Bytes>,
    begun: &mut bool,
    ended: bool,
) {
    if !ended {
        let mut body = Body::new(onward.framing, Form::Parts);
        match pieces(&mut body, (&mut *read, &mut *held), up, begun).await {
            Err(Broken::Source(why)) => return up.send_reset(why),
            Ok(()) | Err(Broken::Sink(_) | Broken::Malformed) => {}
        }
    }
    while fill(read, held).await {
        held.clear();
    }
}

/// Reads more; false at the end. With room for a frame: many small ones are what servers defend themselves against.
async fn fill(read: &mut ReadHalf<DuplexStream>, held: &mut BytesMut) -> bool {
    if held.capacity() - held.len() < FRAME / 4 {
        held.reserve(FRAME);
    }
    matches!(read.read_buf(held).await, Ok(1..))
}

async fn pieces(
    body: &mut Body,
    (read, held): (&mut ReadHalf<DuplexStream>, &mut BytesMut),
    up: &mut SendStream<Bytes>,
    begun: &mut bool,
) -> Result<(), Broken> {
    const CUT: Broken = Broken::Source(Reason::CANCEL);
    loop {
        if let Some(section) = body.finish() {
            return body::end(up, wire::trailers(&section));
        }
        if held.is_empty() && !body::unless_left(up, fill(read, held)).await? {
            return Err(CUT);
        }
        let run = body.read(held).map_err(|_| CUT)?;
        let piece = held.split_to(run.len).freeze();
        *begun = true;
        if run.pass {
            body::send(up, piece, body.is_done(), Duration::MAX).await?;
        }
        if body.is_done() {
            return Ok(());
        }
    }
}

/// Writes the answer as HTTP/1.1: 1xx on their way, then the head, then each piece when it comes.
async fn answer(
    onward: &Onward,
    mut response: ResponseFuture,
    write: &mut WriteHalf<DuplexStream>,
) -> Result<(), Lost> {
    let dropped = |_: io::Error| Lost::Dropped;
    let (parts, mut body) = loop {
        match super::to_h2::next_head(&mut response).await {
            Ok(super::to_h2::Head::Final(response)) => break response.into_parts(),
            Ok(super::to_h2::Head::Early(mut early)) => {
                fields::answer(early.headers_mut());
                write.write_all(&head::early(&early)).await.map_err(dropped)?;
            }
            Err(error) => {
                let harmless = asked::is_idempotent(onward.request.method());
                return Err(match super::to_h2::judge(&error, true, harmless) {
                    super::to_h2::Lost::Untouched(cause) => Lost::Untouched(cause),
                    super::to_h2::Lost::Failed(_) => Lost::Broken(words(&error)),
                });
            }
        }
    };
    let (head, form) = head::last(parts, onward, body.is_end_stream());
    write.write_all(&head).await.map_err(dropped)?;
    if form == BodyAs::Nothing {
        return Ok(());
    }
    let chunked = form == BodyAs::Chunks;
    let broken = |error: h2::Error| Lost::Broken(words(&error));
    while let Some(piece) = body::unless_early(body.data().await).map_err(broken)? {
        piece_out(write, &mut body, piece, chunked).await.map_err(dropped)?;
    }
    let trailers = body::unless_early(body.trailers().await.transpose()).map_err(broken)?;
    if chunked {
        let mut trailers = trailers.unwrap_or_default();
        fields::late(&mut trailers);
        write.write_all(&wire::last_chunk(&trailers)).await.map_err(dropped)?;
    }
    // Where less came than was promised, this says so.
    write.shutdown().await.map_err(dropped)
}

/// What the exchange has not taken is not granted to the backend.
async fn piece_out(
    write: &mut WriteHalf<DuplexStream>,
    body: &mut RecvStream,
    piece: Bytes,
    chunked: bool,
) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    if chunked {
        write.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
    }
    write.write_all(&piece).await?;
    if chunked {
        write.write_all(b"\r\n").await?;
    }
    // A backend that is gone needs no window.
    let _ = body.flow_control().release_capacity(piece.len());
    Ok(())
}

/// What an error of a stream or of its session is called where a person reads it.
fn words(error: &h2::Error) -> String {
    match error.reason() {
        Some(reason) if error.is_reset() => format!("the backend reset the stream ({reason})"),
        _ => format!("HTTP/2: {error}"),
    }
}
