//! The body of a request as far as it was taken from the client, held while it is little: a backend that says that it has not
//! looked at a request gets it once more (proxy rule 16).
use super::body::{Broken, end, next, send, trailers};
use super::screen::Malformed;
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use std::time::Duration;

/// So much is held.
const KEPT: usize = 32 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pieces: Vec<Bytes>,
    /// More was taken than is held.
    gone: bool,
    /// The client's side is used up; the trailers that it ended with, empty for none.
    ended: Option<HeaderMap>,
    /// Bytes.
    pub(super) bytes: u64,
}

impl Taken {
    /// Whether all that was taken can be sent again; what has not come yet follows then.
    pub(super) fn can_repeat(&self) -> bool {
        !self.gone
    }

    /// Moves what is held and what still comes, with the trailers; a break is passed on as a reset with its reason.
    pub(super) async fn pump(
        &mut self,
        from: &mut RecvStream,
        to: &mut SendStream<Bytes>,
        malformed: &Malformed,
    ) -> Result<(), Broken> {
        let result = self.data(from, to, malformed).await;
        match result {
            Err(Broken::Source(why)) => to.send_reset(why),
            Err(Broken::Malformed) => to.send_reset(Reason::CANCEL),
            Ok(()) | Err(Broken::Sink(_)) => {}
        }
        result
    }

    async fn data(
        &mut self,
        from: &mut RecvStream,
        to: &mut SendStream<Bytes>,
        malformed: &Malformed,
    ) -> Result<(), Broken> {
        for piece in &self.pieces {
            send(to, piece.clone(), false, Duration::MAX).await?;
        }
        while self.ended.is_none() {
            let Some(piece) = next(from, to).await? else {
                self.ended = Some(trailers(from, malformed).await?);
                break;
            };
            let (length, last) = (piece.len(), from.is_end_stream());
            self.keep(&piece);
            if last {
                self.ended = Some(HeaderMap::new());
            }
            send(to, piece, last, Duration::MAX).await?;
            // A source that is gone needs no window.
            let _ = from.flow_control().release_capacity(length);
            if last {
                return Ok(());
            }
        }
        end(to, self.ended.clone().unwrap_or_default())
    }

    fn keep(&mut self, piece: &Bytes) {
        self.bytes += piece.len() as u64;
        self.gone |= self.bytes > KEPT as u64;
        if self.gone {
            self.pieces.clear();
        } else {
            self.pieces.push(piece.clone());
        }
    }
}
