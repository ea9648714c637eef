//! A request on its way to a backend that speaks HTTP/1.1.
use super::super::framing::Framing;
use super::head1;
use bytes::Bytes;
use h2::RecvStream;
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// All of it went out.
    Whole,
    /// The backend takes no more; its answer may be there all the same.
    Refused,
    /// The client reset the stream or is gone.
    ClientLeft,
}

/// Writes head and body. What the backend has not taken is not granted to the client, so that no body is held here.
pub(super) async fn run(
    body: &mut RecvStream,
    write: &mut (impl AsyncWrite + Unpin),
    head: &[u8],
    framing: Framing,
    tunnel: Option<oneshot::Receiver<()>>,
    bytes_in: &mut u64,
) -> Uploaded {
    let begun = async {
        write.write_all(head).await?;
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
    } else if framing == Framing::None {
        return Uploaded::Whole;
    }
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else { return Uploaded::ClientLeft };
        let length = piece.len();
        if one(write, piece, framing).await.is_err() {
            return Uploaded::Refused;
        }
        *bytes_in += length as u64;
        // A client that is gone needs no window.
        let _ = body.flow_control().release_capacity(length);
    }
    let trailers = match body.trailers().await {
        Ok(trailers) => trailers.unwrap_or_default(),
        Err(_) => return Uploaded::ClientLeft,
    };
    let ended = async {
        if framing == Framing::Chunked {
            let mut trailers = trailers;
            super::fields::late(&mut trailers);
            write.write_all(&head1::last_chunk(&trailers)).await?;
        }
        if tunnels { write.shutdown().await } else { write.flush().await }
    };
    if ended.await.is_ok() { Uploaded::Whole } else { Uploaded::Refused }
}

async fn one(write: &mut (impl AsyncWrite + Unpin), piece: Bytes, framing: Framing) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    if framing == Framing::Chunked {
        let size = format!("{:x}\r\n", piece.len());
        let mut chunk = bytes::Buf::chain(bytes::Buf::chain(size.as_bytes(), piece), &b"\r\n"[..]);
        write.write_all_buf(&mut chunk).await?;
    } else {
        write.write_all(&piece).await?;
    }
    write.flush().await
}
