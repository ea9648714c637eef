//! A loopback address of this host, on both literals when the backend is named `localhost` (proxy rule 3).
use super::{Asker, DialError};
use stado_fleet::name::LoopbackAddr;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// How long the first address of a pair may stay silent before the second is asked as well.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects within the budget; remembers which family of a pair answered.
pub(super) async fn connect(addr: LoopbackAddr, asker: &Asker<'_>) -> Result<TcpStream, DialError> {
    let mut candidates = addr.candidates();
    if asker.answered_last.load(Ordering::Relaxed) == 1 {
        candidates.reverse();
    }
    for candidate in &candidates {
        asker.own.check(*candidate, asker.id).map_err(DialError::Loop)?;
    }
    let attempt = async {
        match *candidates.as_slice() {
            [first, second] => either(first, second).await,
            _ => one_by_one(&candidates).await,
        }
    };
    let stream = timeout(asker.budget, attempt)
        .await
        .map_err(|_| DialError::Silent(candidates.clone(), asker.budget))?
        .map_err(DialError::Refused)?;
    if candidates.len() > 1 {
        let family = stream.peer_addr().is_ok_and(|peer| peer.is_ipv6());
        asker.answered_last.store(u8::from(family), Ordering::Relaxed);
    }
    // A socket without NODELAY still works; the connection is worth more than the option.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

type Failures = Vec<(SocketAddr, io::Error)>;

async fn one(addr: SocketAddr) -> Result<TcpStream, Failures> {
    super::loopback::connect(addr).await.map_err(|error| vec![(addr, error)])
}

async fn one_by_one(candidates: &[SocketAddr]) -> Result<TcpStream, Failures> {
    let mut failures = Failures::new();
    for addr in candidates {
        match one(*addr).await {
            Ok(stream) => return Ok(stream),
            Err(refused) => failures.extend(refused),
        }
    }
    Err(failures)
}

/// The second address is asked when the first refuses, or has been silent for [`HEAD_START`]; the first answer wins.
async fn either(first: SocketAddr, second: SocketAddr) -> Result<TcpStream, Failures> {
    let mut ahead = std::pin::pin!(one(first));
    let refused = tokio::select! {
        result = &mut ahead => match result {
            Ok(stream) => return Ok(stream),
            Err(refused) => Some(refused),
        },
        () = sleep(HEAD_START) => None,
    };
    if let Some(mut failures) = refused {
        return one(second).await.map_err(|more| {
            failures.extend(more);
            failures
        });
    }
    let mut behind = std::pin::pin!(one(second));
    let (ahead_failed, mut failures) = tokio::select! {
        result = &mut ahead => (true, match result { Ok(stream) => return Ok(stream), Err(refused) => refused }),
        result = &mut behind => (false, match result { Ok(stream) => return Ok(stream), Err(refused) => refused }),
    };
    let last = if ahead_failed { behind.await } else { ahead.await };
    last.map_err(|more| {
        failures.extend(more);
        failures
    })
}
