//! A body on its way into a file: read here, written by a task that may block, at most a few pieces apart.
use bytes::Bytes;
use sha2::{Digest, Sha256};
use stado_fleet::disk::{DiskError, Staged};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// A client that sends nothing for so long has gone.
const IDLE: Duration = Duration::from_secs(60);
const PIECE: usize = 256 << 10;
const UNDER_WAY: usize = 4;

/// Why there is no upload.
#[derive(Debug)]
pub(super) enum Lost {
    /// The client went before the end of its body: there is nobody to answer.
    Gone,
    /// It could not be written.
    Disk(String),
}

/// A whole body, beside its place, and its version.
pub(super) struct Uploaded {
    pub(super) staged: Staged,
    pub(super) version: String,
}

/// Reads `length` bytes, the first of which are `early`, into a file beside `path`.
pub(super) async fn to_file<R: AsyncRead + Unpin>(
    stream: &mut R,
    early: Vec<u8>,
    length: u64,
    path: PathBuf,
) -> Result<Uploaded, Lost> {
    let (send, mut pieces) = mpsc::channel::<Bytes>(UNDER_WAY);
    let writing = tokio::task::spawn_blocking(move || -> Result<Uploaded, DiskError> {
        let (mut staged, mut hash) = (Staged::begin(&path)?, Sha256::new());
        while let Some(piece) = pieces.blocking_recv() {
            hash.update(&piece);
            staged.write(&piece)?;
        }
        Ok(Uploaded { staged, version: hex::encode(hash.finalize()) })
    });
    let mut sent = Ok(());
    let mut pieces = Pieces { stream, early, left: length };
    while let Some(piece) = pieces.next().await? {
        if send.send(piece).await.is_err() {
            // The writer ended early and says why.
            sent = Err(());
            break;
        }
    }
    drop(send);
    match writing.await {
        Ok(Ok(uploaded)) if sent.is_ok() => Ok(uploaded),
        Ok(Err(error)) => Err(Lost::Disk(error.to_string())),
        Ok(Ok(_)) => Err(Lost::Disk("the upload ended early".into())),
        Err(error) => Err(Lost::Disk(error.to_string())),
    }
}

/// Reads `length` bytes into memory.
pub(super) async fn to_memory<R: AsyncRead + Unpin>(
    stream: &mut R,
    early: Vec<u8>,
    length: u64,
) -> Result<Vec<u8>, Lost> {
    let mut pieces = Pieces { stream, early, left: length };
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await? {
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

struct Pieces<'s, R> {
    stream: &'s mut R,
    early: Vec<u8>,
    left: u64,
}

impl<R: AsyncRead + Unpin> Pieces<'_, R> {
    /// `None` at the end of the body; what follows it on the connection is not looked at.
    async fn next(&mut self) -> Result<Option<Bytes>, Lost> {
        if self.left == 0 {
            return Ok(None);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = std::mem::take(&mut self.early);
        if piece.is_empty() {
            piece.resize(most, 0);
            let read = tokio::time::timeout(IDLE, self.stream.read(&mut piece)).await;
            let read = read.map_err(|_| Lost::Gone)?.map_err(|_| Lost::Gone)?;
            if read == 0 {
                return Err(Lost::Gone);
            }
            piece.truncate(read);
        }
        piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= piece.len() as u64;
        Ok(Some(piece.into()))
    }
}
