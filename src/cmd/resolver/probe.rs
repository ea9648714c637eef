//! Does somebody listen there.
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A loopback bind answers at once or not at all.
const LIMIT: Duration = Duration::from_millis(250);
/// Connections at a time.
const AT_ONCE: usize = 64;

/// Connects, and resets at once: a mere close would go through the adapter as a half-close, and a service that does not close for
/// it would keep the connection. A loopback port that neither takes nor refuses is somebody's whose queue is full.
pub(super) async fn listens(addr: SocketAddr) -> bool {
    match tokio::time::timeout(LIMIT, TcpStream::connect(addr)).await {
        // Without the option it is closed all the same.
        Ok(connected) => connected.map(|stream| drop(stream.set_zero_linger())).is_ok(),
        Err(_) => addr.ip().is_loopback(),
    }
}

/// Tries each of them, many at a time; `None` stays `None`. A daemon that is frozen costs the limit once, not once for each.
pub(crate) async fn all_listen(binds: Vec<Option<SocketAddr>>) -> Vec<Option<bool>> {
    let mut seen = Vec::with_capacity(binds.len());
    for some in binds.chunks(AT_ONCE) {
        let mut tries = JoinSet::new();
        for (at, bind) in some.iter().enumerate() {
            if let Some(bind) = *bind {
                tries.spawn(async move { (at, listens(bind).await) });
            }
        }
        let answers = tries.join_all().await;
        let answer = |at: usize| answers.iter().find(|(of, _)| *of == at).map(|(_, listens)| *listens);
        seen.extend((0..some.len()).map(answer));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
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
        let seen = all_listen(all).await;
        assert!(started.elapsed() < LIMIT * 30, "one after the other would take sixty limits");
        assert_eq!(seen[60..], [Some(true), None, Some(false)]);
        assert!(seen[..60].iter().all(|seen| *seen == Some(false)));
    }
}
