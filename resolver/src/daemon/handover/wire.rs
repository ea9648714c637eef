//! Messages and descriptors between two daemons of one user: a head of eight bytes (length and number of descriptors, both
//! big-endian), then JSON. The descriptors travel with the head (`SCM_RIGHTS`).
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Descriptors in one message; the system takes at most 253.
pub(super) const BATCH: usize = 200;
/// Bytes of one message: a registry of 64 MiB and everything around it.
const LARGEST: usize = 256 << 20;
const HEAD: usize = 8;

/// A connection on which the other end does not say what was agreed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection ended.
    #[error("the other process ended the connection")]
    Ended,
    /// Nothing came.
    #[error("the other process said nothing for {}s", .0.as_secs())]
    Silent(Duration),
    /// The system said no.
    #[error("the connection to the other process broke: {0}")]
    Broken(#[from] io::Error),
    /// Not what was agreed.
    #[error("the other process said something else than was agreed: {0}")]
    Strange(String),
}

/// One end.
#[derive(Debug)]
pub(in crate::daemon) struct Wire(UnixStream);

impl Wire {
    /// Over a connection whose preamble has been spoken.
    pub(in crate::daemon) fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    /// Sends one message with at most [`BATCH`] descriptors.
    pub(in crate::daemon) async fn send(
        &mut self,
        message: &impl Serialize,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), WireError> {
        let payload = serde_json::to_vec(message).map_err(|error| WireError::Strange(error.to_string()))?;
        let too_large = || WireError::Strange(format!("a message of {} bytes", payload.len()));
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= LARGEST).ok_or_else(too_large)?;
        let count = u32::try_from(fds.len()).ok().filter(|_| fds.len() <= BATCH).ok_or_else(too_large)?;
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&length.to_be_bytes());
        head[4..].copy_from_slice(&count.to_be_bytes());
        let sent = self.0.async_io(Interest::WRITABLE, || send_head(&self.0, &head, fds)).await?;
        self.0.write_all(head.get(sent..).unwrap_or_default()).await?;
        self.0.write_all(&payload).await?;
        Ok(())
    }

    /// The next message with its descriptors, within `patience`.
    pub(in crate::daemon) async fn receive<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
    ) -> Result<(T, Vec<OwnedFd>), WireError> {
        timeout(patience, self.next()).await.unwrap_or(Err(WireError::Silent(patience)))
    }

    /// The next message, however long it takes.
    pub(in crate::daemon) async fn next<T: DeserializeOwned>(&mut self) -> Result<(T, Vec<OwnedFd>), WireError> {
        let mut fds = Vec::new();
        let mut head = [0; HEAD];
        let mut have = 0;
        while have < HEAD {
            let rest = head.get_mut(have..).unwrap_or_default();
            let stream = &self.0;
            let (read, whole) = stream.async_io(Interest::READABLE, || receive_head(stream, rest, &mut fds)).await?;
            if read == 0 {
                return Err(WireError::Ended);
            }
            if !whole {
                return Err(WireError::Strange("descriptors were lost: this process may not open so many".into()));
            }
            have += read;
        }
        let [a, b, c, d, e, f, g, h] = head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let count = u32::from_be_bytes([e, f, g, h]) as usize;
        if length > LARGEST || count != fds.len() {
            return Err(WireError::Strange(format!(
                "a message of {length} bytes with {count} descriptors, of which {} came",
                fds.len()
            )));
        }
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => WireError::Ended,
            _ => WireError::Broken(error),
        })?;
        let message = serde_json::from_slice(&payload).map_err(|error| WireError::Strange(error.to_string()))?;
        Ok((message, fds))
    }

    /// Returns when the other end is gone, or says something although nothing was asked.
    pub(in crate::daemon) async fn ended(&self) {
        loop {
            let readable = self.0.readable().await;
            match self.0.try_read(&mut [0]) {
                Err(error) if readable.is_ok() && error.kind() == io::ErrorKind::WouldBlock => {}
                // Either way there is nothing more to be had from it.
                _ => return,
            }
        }
    }
}

fn send_head(stream: &UnixStream, head: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    Ok(sendmsg(stream, &[IoSlice::new(head)], &mut control, flags())?)
}

/// Bytes that were read, and whether all descriptors came with them.
fn receive_head(stream: &UnixStream, into: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<(usize, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, received_flags())?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    #[cfg(target_vendor = "apple")]
    for fd in fds.iter() {
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((got.bytes, !got.flags.contains(ReturnFlags::CTRUNC)))
}

fn flags() -> SendFlags {
    #[cfg(target_vendor = "apple")]
    return SendFlags::empty();
    #[cfg(not(target_vendor = "apple"))]
    SendFlags::NOSIGNAL
}

fn received_flags() -> RecvFlags {
    #[cfg(target_vendor = "apple")]
    return RecvFlags::empty();
    #[cfg(not(target_vendor = "apple"))]
    RecvFlags::CMSG_CLOEXEC
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
