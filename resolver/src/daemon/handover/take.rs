//! The side that comes: asks, receives, and says when it has built everything and when it serves.
use super::error::TakeError;
use super::parcel::{Ask, Comer, Offer, Parcel, Remainder, Server};
use super::wire::{Wire, WireError};
use super::{STEP, WORK};
use crate::api::control::{HAND_OVER_PATH, HAND_OVER_VERSION, protocol, version_in};
use crate::daemon::config::Config;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

/// A hand-over that did not begin.
const BEFORE: &str = "before anything was handed over";
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);
/// Most that is read of an answer's head, and of a refusal's body.
const LARGEST: usize = 64 << 10;

/// A hand-over under way, with all that was handed over.
pub(in crate::daemon) struct Taking {
    wire: Wire,
    pub(in crate::daemon) parcel: Parcel,
    /// Offers with their descriptors.
    pub(in crate::daemon) offers: Vec<(Offer, Vec<OwnedFd>)>,
}

/// Asks the daemon on the control socket for everything. `None`: no daemon is there. A daemon that was taken over a moment
/// ago may still have accepted the connection: then its successor is asked.
pub(in crate::daemon) async fn take(config: &Config) -> Result<Option<Taking>, TakeError> {
    let deadline = Instant::now() + STEP;
    loop {
        match ask(config).await {
            Err(TakeError::Broken { step: BEFORE, source: WireError::Ended }) if Instant::now() < deadline => {
                sleep(AGAIN).await;
            }
            asked => return asked,
        }
    }
}

async fn ask(config: &Config) -> Result<Option<Taking>, TakeError> {
    let Some(mut wire) = connect(&config.mesh.socket).await? else { return Ok(None) };
    let ask = Comer::TakeOver(Ask {
        pid: std::process::id(),
        version: config.version.to_owned(),
        mesh_state: config.mesh.state_path.clone(),
        frontend_host: config.mesh.frontend_host,
        fleet_home: config.fleet.as_ref().map(|fleet| fleet.home.clone()),
    });
    // A connection that has ended is told by the answer that does not come.
    let _ = wire.send(&ask, &[]).await;
    let parcel = match step(wire.receive::<Server>(STEP).await, BEFORE)?.0 {
        Server::Parcel(parcel) => *parcel,
        Server::Refused { why } => return Err(TakeError::Refused(why)),
        _ => return strange(BEFORE),
    };
    let mut offers = Vec::new();
    loop {
        let (said, fds) = step(wire.receive::<Server>(STEP).await, "while listeners were handed over")?;
        match said {
            Server::Batch { offers: batch } => {
                offers.extend(sort(batch, fds)?);
                step(wire.send(&Comer::Got, &[]).await, "while listeners were handed over")?;
            }
            Server::All => return Ok(Some(Taking { wire, parcel, offers })),
            _ => return strange("while listeners were handed over"),
        }
    }
}

/// The descriptors of each offer of a batch.
fn sort(batch: Vec<Offer>, fds: Vec<OwnedFd>) -> Result<Vec<(Offer, Vec<OwnedFd>)>, TakeError> {
    let mut fds = fds.into_iter();
    let sorted: Vec<_> = batch
        .into_iter()
        .map(|offer| {
            let own: Vec<OwnedFd> = fds.by_ref().take(offer.count).collect();
            (offer, own)
        })
        .collect();
    if fds.next().is_some() || sorted.iter().any(|(offer, fds)| offer.count != fds.len()) {
        return strange("while listeners were handed over");
    }
    Ok(sorted)
}

impl Taking {
    /// This process cannot serve it; the other one is told, and goes on.
    pub(in crate::daemon) async fn give_up(mut self, why: String) -> TakeError {
        // Without the word it goes on as well, when the connection ends.
        let _ = self.wire.send(&Comer::Refused { why: why.clone() }, &[]).await;
        TakeError::Unusable(why)
    }

    /// Everything is built. Returns with the word to serve, what changed meanwhile, and what was handed over to it before.
    pub(in crate::daemon) async fn ready(&mut self) -> Result<(Remainder, Vec<Remainder>), TakeError> {
        step(self.wire.send(&Comer::Ready, &[]).await, "when all was ready")?;
        match step(self.wire.receive::<Server>(WORK).await, "when all was ready")?.0 {
            Server::Go { last, behind } => Ok((last, behind)),
            _ => strange("when all was ready"),
        }
    }

    /// This process serves and publishes. An error means that the other one goes on: this one must end.
    pub(in crate::daemon) async fn running(mut self) -> Result<Wire, TakeError> {
        step(self.wire.send(&Comer::Running, &[]).await, "when this one already served")?;
        Ok(self.wire)
    }
}

fn step<T>(result: Result<T, WireError>, step: &'static str) -> Result<T, TakeError> {
    result.map_err(|source| TakeError::Broken { step, source })
}

fn strange<T>(at: &'static str) -> Result<T, TakeError> {
    step(Err(WireError::Strange("it is not its turn to say that".into())), at)
}

/// Speaks the preamble. `None`: nobody listens there.
pub(in crate::daemon) async fn connect(socket: &Path) -> Result<Option<Wire>, TakeError> {
    let fail = |source| TakeError::Unreachable { socket: socket.to_owned(), source };
    let mut stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let peer = stream.peer_cred().map_err(fail)?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(TakeError::Foreign { socket: socket.to_owned(), user: peer.uid() });
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let request = format!(
        "POST {HAND_OVER_PATH} HTTP/1.1\r\nHost: stado\r\nConnection: Upgrade\r\nUpgrade: {}\r\nContent-Length: 0\r\n\r\n",
        protocol()
    );
    stream.write_all(request.as_bytes()).await.map_err(fail)?;
    let answer = timeout(STEP, read_answer(&mut stream)).await;
    let answer = answer.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())).map_err(fail)?;
    match answer.status {
        101 => Ok(Some(Wire::new(stream))),
        426 => {
            let theirs = answer.upgrade.as_deref().and_then(version_in).map(|version| version.to_string());
            let theirs = theirs.unwrap_or_else(|| "unknown".into());
            Err(TakeError::Version { pid, theirs, ours: HAND_OVER_VERSION })
        }
        503 => step(Err(WireError::Ended), BEFORE),
        404 | 405 | 501 => Err(TakeError::Unknown { socket: socket.to_owned(), pid }),
        _ => Err(TakeError::Refused(answer.sentence)),
    }
}

struct Answer {
    status: u16,
    upgrade: Option<String>,
    /// Why not, when it says so.
    sentence: String,
}

/// Reads the head byte by byte, since what follows an upgrade comes with descriptors, and the body of a refusal.
async fn read_answer(stream: &mut UnixStream) -> io::Result<Answer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LARGEST {
            return Err(io::Error::other("its answer has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&head).map_err(io::Error::other)?;
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let status = response.code.unwrap_or_default();
    let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; if status == 101 { 0 } else { LARGEST.min(length) }];
    stream.read_exact(&mut body).await?;
    let said = serde_json::from_slice::<stado_fleet::wire::ErrorEnvelope>(&body).map(|envelope| envelope.error.message);
    let sentence = said.unwrap_or_else(|_| format!("it answers {status}"));
    Ok(Answer { status, upgrade: header("upgrade").map(str::to_owned), sentence })
}
