//! Does somebody listen there.
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// A loopback bind answers at once or not at all.
const LIMIT: Duration = Duration::from_millis(250);
/// Connections at a time.
const AT_ONCE: usize = 64;

/// Connects, and resets at once: a mere close would go through the adapter as a half-close, and a service that does not close for
/// it would keep the connection. A loopback port that neither takes nor refuses is somebody's whose queue is full.
pub(super) async fn listens(addr: SocketAddr) -> bool {
    taken(addr, async { TcpStream::connect(addr).await }).await
}

async fn taken(addr: SocketAddr, connecting: impl Future<Output = std::io::Result<TcpStream>>) -> bool {
    match tokio::time::timeout(LIMIT, connecting).await {
        // Without the option it is closed all the same.
        Ok(connected) => connected.map(|stream| drop(stream.set_zero_linger())).is_ok(),
        Err(_) => addr.ip().is_loopback(),
    }
}

/// Tries each of them, many at a time; `None` stays `None`. A daemon that is frozen costs the limit once, not once for each.
/// `api`: the resolution API of the resolver whose adapters they are, which is told that this is no traffic.
pub(crate) async fn all_listen(binds: Vec<Option<SocketAddr>>, api: Option<SocketAddr>) -> Vec<Option<bool>> {
    let mut seen = Vec::with_capacity(binds.len());
    for some in binds.chunks(AT_ONCE) {
        let mut ways: Vec<Option<Way>> = some.iter().map(|bind| bind.map(Way::to)).collect();
        announce(api, ways.iter().flatten().filter_map(Way::from), true).await;
        let mut tries = JoinSet::new();
        for (at, way) in ways.iter_mut().enumerate() {
            if let Some(way) = way.take() {
                tries.spawn(async move { (at, taken(way.addr, way.connect()).await) });
            }
        }
        let answers = tries.join_all().await;
        let answer = |at: usize| answers.iter().find(|(of, _)| *of == at).map(|(_, listens)| *listens);
        seen.extend((0..some.len()).map(answer));
    }
    seen
}

/// A connection that is about to be made, from an address that is known before.
pub(crate) struct Way {
    addr: SocketAddr,
    /// Without one it is made from anywhere.
    socket: Option<TcpSocket>,
}

impl Way {
    pub(crate) fn to(addr: SocketAddr) -> Self {
        let bound = || {
            let (socket, here) = match addr {
                SocketAddr::V4(_) => (TcpSocket::new_v4()?, Ipv4Addr::LOCALHOST.into()),
                SocketAddr::V6(_) => (TcpSocket::new_v6()?, Ipv6Addr::LOCALHOST.into()),
            };
            socket.bind(SocketAddr::new(here, 0))?;
            Ok::<_, std::io::Error>(socket)
        };
        Self { addr, socket: bound().ok().filter(|_| addr.ip().is_loopback()) }
    }

    /// Where it comes from.
    pub(crate) fn from(&self) -> Option<SocketAddr> {
        self.socket.as_ref()?.local_addr().ok()
    }

    pub(crate) async fn connect(self) -> std::io::Result<TcpStream> {
        match self.socket {
            Some(socket) => socket.connect(self.addr).await,
            None => TcpStream::connect(self.addr).await,
        }
    }
}

/// Tells a resolver that connections from these addresses are no traffic; `accepts`: nor need they reach a service. One that does
/// not know the question, or does not answer, counts them.
pub(crate) async fn announce(api: Option<SocketAddr>, clients: impl Iterator<Item = SocketAddr>, accepts: bool) {
    let Some(api) = api else { return };
    let mut words: Vec<String> = clients.map(|client| format!("client={client}")).collect();
    if words.is_empty() {
        return;
    }
    words.extend(accepts.then(|| "only=accepts".to_owned()));
    let asked = async {
        let mut stream = TcpStream::connect(api).await?;
        let query = words.join("&");
        let head = format!("GET /v1/probe?{query} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        // Its answer says that it has heard.
        stream.read_u8().await
    };
    let _ = tokio::time::timeout(LIMIT, asked).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Instant;

    #[tokio::test]
    async fn a_probe_leaves_no_connection_behind_at_a_service_that_does_not_close() {
        let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(listens(open.local_addr().unwrap()).await);
        let (mut probe, _) = open.accept().unwrap();
        let ended = std::io::Read::read(&mut probe, &mut [0]).unwrap_err();
        assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn many_binds_that_hang_cost_little_more_than_one() {
        let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (open_at, closed_at) = (open.local_addr().unwrap(), closed.local_addr().unwrap());
        drop(closed);
        // Nobody answers there, nor refuses.
        let silent: SocketAddr = "192.0.2.1:9".parse().unwrap();
        let mut all = vec![Some(silent); 60];
        all.extend([Some(open_at), None, Some(closed_at)]);
        let started = Instant::now();
        let seen = all_listen(all, None).await;
        assert!(started.elapsed() < LIMIT * 30, "one after the other would take sixty limits");
        assert_eq!(seen[60..], [Some(true), None, Some(false)]);
        assert!(seen[..60].iter().all(|seen| *seen == Some(false)));
    }
}
