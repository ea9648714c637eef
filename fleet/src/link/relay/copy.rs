//! Between a stream of the multiplex and the service's socket. Half-closes and resets are passed on as what they are.
use super::FRAME;
use super::pace::{Gait, Pace};
use super::refusal::{Code, Refusal, as_io, reset as as_reset};
use bytes::{BufMut, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Smallest and largest read: the buffer follows what the service sends, and there is none while it says nothing.
const SMALL: usize = 4 * 1024;
const LARGE: usize = 2 * FRAME as usize;
/// For the word of this host's daemon on a service that ended without one.
const EXPLAINED: Duration = Duration::from_secs(1);

/// Closing the socket then resets its connection.
pub(super) fn reset(service: &TcpStream) {
    let _ = socket2::SockRef::from(service).set_linger(Some(Duration::ZERO));
}

/// Resets the service unless the copy came to its end: also when the whole multiplex goes.
struct Service {
    socket: TcpStream,
    whole: bool,
}
impl Drop for Service {
    fn drop(&mut self) {
        if !self.whole {
            reset(&self.socket);
        }
    }
}

/// Copies both ways until both ends are done, or one of them broke. `why`: asked when the service ends without a word.
pub(super) async fn both(
    socket: TcpStream,
    mut recv: RecvStream,
    send: SendStream<Bytes>,
    pace: &Pace,
    why: impl Future<Output = Option<String>>,
) {
    let mut service = Service { socket, whole: false };
    let said = AtomicBool::new(false);
    let broken = {
        let socket = &service.socket;
        let (up, down) = (up(socket, &mut recv), down(socket, send, pace, &said, why));
        tokio::pin!(up, down);
        let (mut up_is_done, mut up_broke, mut held) = (false, false, None);
        loop {
            tokio::select! {
                done = &mut up, if !up_is_done => match done {
                    Ok(()) => up_is_done = true,
                    // Why a service is gone that never said a word is found out the other way.
                    Err(_) if held.is_none() && !said.load(Ordering::Relaxed) => (up_is_done, up_broke) = (true, true),
                    Err(_) => break held,
                },
                (send, end) = &mut down, if held.is_none() => {
                    held = Some(send);
                    match end {
                        End::Told => return,
                        End::Broken => break held,
                        End::Whole if up_broke => break held,
                        End::Whole => {}
                    }
                }
                // The client may reset what it only half closed.
                () = was_reset(held.as_mut()), if held.is_some() => return,
            }
            if up_is_done && held.is_some() {
                service.whole = true;
                return;
            }
        }
    };
    if let Some(mut send) = broken {
        send.send_reset(Reason::CONNECT_ERROR);
    }
}

async fn was_reset(send: Option<&mut SendStream<Bytes>>) {
    if let Some(send) = send {
        let _ = std::future::poll_fn(|cx| send.poll_reset(cx)).await;
    }
}

fn lost() -> String {
    "the multiplex ended".to_owned()
}

/// From the client to the service. Credit is given back once the service's socket has taken the bytes.
async fn up(service: &TcpStream, recv: &mut RecvStream) -> io::Result<()> {
    loop {
        let data = tokio::select! {
            data = recv.data() => data,
            // Half closed and with nothing to write, a reset would be seen by nobody.
            broken = service.ready(Interest::ERROR) => {
                broken?;
                return Err(service.take_error()?.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()));
            }
        };
        let Some(data) = data else { break };
        let data = data.map_err(|error| as_io(&error, lost))?;
        write_all(service, &data).await?;
        let _ = recv.flow_control().release_capacity(data.len());
    }
    socket2::SockRef::from(service).shutdown(Shutdown::Write)
}

async fn write_all(service: &TcpStream, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match service.try_write(data) {
            Ok(n) => data = data.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => service.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How the way from the service to the client ended.
enum End {
    /// In order.
    Whole,
    /// Without a word of the service, and the client was told why.
    Told,
    /// One of the two broke.
    Broken,
}

/// From the service to the client, no faster than the client's credit.
async fn down(
    service: &TcpStream,
    mut send: SendStream<Bytes>,
    pace: &Pace,
    said: &AtomicBool,
    why: impl Future<Output = Option<String>>,
) -> (SendStream<Bytes>, End) {
    let ended = pump(service, &mut send, pace, said).await;
    let end = match ended {
        Ok(()) => End::Whole,
        Err(Stopped::Broken) => End::Broken,
        Err(Stopped::Unsaid { whole }) => {
            let told =
                timeout(EXPLAINED, why).await.ok().flatten().map(|why| Refusal::new(Code::Refused, why).headers());
            match told {
                Some(headers) if send.send_trailers(headers.clone()).is_ok() => End::Told,
                _ if whole && send.send_data(Bytes::new(), true).is_ok() => End::Whole,
                _ => End::Broken,
            }
        }
    };
    (send, end)
}

/// Why nothing more comes down.
enum Stopped {
    Broken,
    /// The service ended before its first byte: in order, or with a reset.
    Unsaid {
        whole: bool,
    },
}

async fn pump(
    service: &TcpStream,
    send: &mut SendStream<Bytes>,
    pace: &Pace,
    said: &AtomicBool,
) -> Result<(), Stopped> {
    let (mut size, mut gait) = (SMALL, Gait::default());
    loop {
        let room = room(send, size).await.map_err(|_| Stopped::Broken)?;
        let piece = match read(service, send, room.min(size)).await {
            Ok(Some(piece)) => piece,
            Ok(None) => continue,
            Err(Gone::Service) if !said.load(Ordering::Relaxed) => return Err(Stopped::Unsaid { whole: false }),
            Err(_) => return Err(Stopped::Broken),
        };
        let (n, last) = (piece.len(), piece.is_empty());
        if last && !said.load(Ordering::Relaxed) {
            return Err(Stopped::Unsaid { whole: true });
        }
        said.store(true, Ordering::Relaxed);
        std::future::poll_fn(|cx| pace.poll_enter(cx, &mut gait, n, Instant::now())).await;
        send.send_data(piece, last).map_err(|_| Stopped::Broken)?;
        if last {
            return Ok(());
        }
        size = if n == size {
            (size * 4).min(LARGE)
        } else if n < size / 8 {
            (size / 4).max(SMALL)
        } else {
            size
        };
    }
}

/// Waits for credit of up to `wanted` bytes.
async fn room(send: &mut SendStream<Bytes>, wanted: usize) -> io::Result<usize> {
    loop {
        let room = send.capacity();
        if room > 0 {
            return Ok(room);
        }
        send.reserve_capacity(wanted);
        match std::future::poll_fn(|cx| send.poll_capacity(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(as_io(&error, lost)),
            None => return Err(as_reset(Reason::CANCEL)),
        }
    }
}

/// Who is not there any more.
enum Gone {
    Client,
    Service,
}

/// One read of up to `limit` bytes; empty at the end, `None` when there was nothing after all.
async fn read(service: &TcpStream, send: &mut SendStream<Bytes>, limit: usize) -> Result<Option<Bytes>, Gone> {
    tokio::select! {
        ready = service.readable() => ready.map_err(|_| Gone::Service)?,
        _ = std::future::poll_fn(|cx| send.poll_reset(cx)) => return Err(Gone::Client),
    }
    let mut piece = BytesMut::with_capacity(limit).limit(limit);
    match service.try_read_buf(&mut piece) {
        Ok(_) => Ok(Some(piece.into_inner().freeze())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(_) => Err(Gone::Service),
    }
}
