//! A request on its way to a backend that speaks HTTP/1.1.
use super::super::framing::Framing;
use super::body::{Broken, trailers};
use super::head1;
use super::screen::Malformed;
use bytes::Bytes;
use h2::RecvStream;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;

/// So much of a request is held, so that it can be sent once more (proxy rule 16).
const KEPT: usize = 32 << 10;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// All of it went out.
    Whole,
    /// The backend takes no more; its answer may be there all the same.
    Refused,
    /// The client reset the stream or is gone.
    ClientLeft,
    /// It ends in trailers that are none.
    Malformed,
}

/// A request as far as it was taken from the client.
#[derive(Debug)]
pub(super) struct Upload {
    /// Its head, and, while it keeps, all that followed.
    held: Vec<u8>,
    framing: Framing,
    keeps: bool,
    /// The client's side is used up.
    ended: bool,
    /// Bytes of its body.
    pub(super) bytes_in: u64,
}

impl Upload {
    /// Begins with `head`. `keeps`: it does no harm twice.
    pub(super) fn new(head: Vec<u8>, framing: Framing, keeps: bool) -> Self {
        Self { held: head, framing, keeps, ended: false, bytes_in: 0 }
    }

    /// Whether all that was taken can be sent again; what has not come yet follows then.
    pub(super) fn can_repeat(&self) -> bool {
        self.keeps
    }

    /// What is sent first.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Writes what is held and what still comes. What the backend has not taken is not granted to the client, so that no more
    /// of a body is held here.
    pub(super) async fn run(
        &mut self,
        body: &mut RecvStream,
        write: &mut (impl AsyncWrite + Unpin),
        tunnel: Option<oneshot::Receiver<()>>,
        malformed: &Malformed,
    ) -> Uploaded {
        let begun = async {
            write.write_all(&self.held).await?;
            write.flush().await
        };
        if begun.await.is_err() {
            return Uploaded::Refused;
        }
        let tunnels = tunnel.is_some();
        if let Some(opened) = tunnel {
            // What comes behind a handshake is the backend's only after its 101 (proxy rule 13).
            if opened.await.is_err() {
                return Uploaded::Refused;
            }
        } else if self.framing == Framing::None || self.ended {
            return Uploaded::Whole;
        }
        while let Some(piece) = body.data().await {
            let Ok(piece) = piece else { return Uploaded::ClientLeft };
            let length = piece.len();
            self.bytes_in += length as u64;
            if self.piece(write, piece).await.is_err() {
                return Uploaded::Refused;
            }
            // A client that is gone needs no window.
            let _ = body.flow_control().release_capacity(length);
        }
        let trailers = match trailers(body, malformed).await {
            Ok(trailers) => trailers,
            Err(Broken::Malformed) => return Uploaded::Malformed,
            Err(_) => return Uploaded::ClientLeft,
        };
        self.ended = true;
        let mut last = Vec::new();
        if self.framing == Framing::Chunked {
            last = head1::last_chunk(&trailers);
            self.keep(&[&last]);
        }
        let ended = async {
            write.write_all(&last).await?;
            if tunnels { write.shutdown().await } else { write.flush().await }
        };
        if ended.await.is_ok() { Uploaded::Whole } else { Uploaded::Refused }
    }

    async fn piece(&mut self, write: &mut (impl AsyncWrite + Unpin), piece: Bytes) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let (size, end) = match self.framing {
            Framing::Chunked => (format!("{:x}\r\n", piece.len()), "\r\n"),
            _ => (String::new(), ""),
        };
        self.keep(&[size.as_bytes(), &piece, end.as_bytes()]);
        let mut chunk = bytes::Buf::chain(bytes::Buf::chain(size.as_bytes(), piece), end.as_bytes());
        write.write_all_buf(&mut chunk).await?;
        write.flush().await
    }

    /// Holds what goes out, as long as all of it is little.
    fn keep(&mut self, pieces: &[&[u8]]) {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.keeps &= self.held.len() + length <= KEPT;
        if self.keeps {
            pieces.iter().for_each(|piece| self.held.extend_from_slice(piece));
        }
    }
}
