//! TCP to an SSH destination: both address families raced, each address with its own deadline.
use super::error::{LinkError, Stage, seconds};
use crate::fault::Class;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The next address is tried beside the first after this long (RFC 8305).
const STAGGER: Duration = Duration::from_millis(250);
/// Unacknowledged data for this long ends the socket, also while the session task is blocked in a write.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects to the first address of `host` that answers; how long that address took.
pub(super) async fn tcp(host: &str, port: u16, per_address: Duration) -> Result<(TcpStream, Duration), LinkError> {
    let addresses = resolve(host, port, per_address).await?;
    let mut waiting = addresses.into_iter();
    let mut running = FuturesUnordered::new();
    let mut failures = Vec::new();
    running.extend(waiting.next().map(|a| attempt(a, per_address)));
    loop {
        tokio::select! {
            done = running.next() => match done {
                Some(Ok((stream, took))) => {
                    tune(&stream);
                    return Ok((stream, took));
                }
                Some(Err(failure)) => {
                    failures.push(failure);
                    running.extend(waiting.next().map(|a| attempt(a, per_address)));
                }
                None => return Err(all_failed(failures)),
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => {
                running.extend(waiting.next().map(|a| attempt(a, per_address)));
            }
        }
    }
}

async fn resolve(host: &str, port: u16, deadline: Duration) -> Result<Vec<SocketAddr>, LinkError> {
    let found = match timeout(deadline, tokio::net::lookup_host((host, port))).await {
        Err(_) => Err((Class::Timeout, format!("no answer within {}", seconds(deadline)))),
        Ok(Err(error)) => Err((Class::InfraDown, error.to_string())),
        Ok(Ok(found)) => Ok(interleave(found.collect())),
    };
    match found {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(LinkError::new(Stage::Connect, Class::InfraDown, format!("the name {host} has no address"))),
        Err((class, why)) => {
            Err(LinkError::new(Stage::Connect, class, format!("the name {host} could not be resolved: {why}")))
        }
    }
}

/// Alternates the families, keeping the resolver's order within each and its first family first.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|a| a.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut mixed = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair.iter().all(Option::is_none) {
            return mixed;
        }
        mixed.extend(pair.into_iter().flatten());
    }
}

async fn attempt(address: SocketAddr, deadline: Duration) -> Result<(TcpStream, Duration), (Class, String)> {
    let began = Instant::now();
    match timeout(deadline, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => Ok((stream, began.elapsed())),
        Ok(Err(error)) => Err((Class::InfraDown, format!("connect to {address}: {error}"))),
        Err(_) => Err((Class::Timeout, format!("connect to {address}: no answer within {}", seconds(deadline)))),
    }
}

fn all_failed(failures: Vec<(Class, String)>) -> LinkError {
    let silent = failures.iter().all(|(class, _)| *class == Class::Timeout);
    let sentences: Vec<String> = failures.into_iter().map(|(_, sentence)| sentence).collect();
    let class = if silent { Class::Timeout } else { Class::InfraDown };
    LinkError::new(Stage::Connect, class, sentences.join(", "))
}

/// A socket that cannot be tuned still works; the keepalive of the session remains.
fn tune(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let keepalive =
        socket2::TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    let results = [socket.set_tcp_nodelay(true), socket.set_tcp_keepalive(&keepalive), user_timeout(&socket)];
    for error in results.into_iter().filter_map(Result::err) {
        tracing::debug!(%error, "an SSH socket keeps a default option");
    }
}

#[cfg(target_os = "linux")]
fn user_timeout(socket: &socket2::Socket) -> std::io::Result<()> {
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))
}
#[cfg(not(target_os = "linux"))]
fn user_timeout(_: &socket2::Socket) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_and_keep_their_order() {
        let parse = |t: &&str| t.parse().unwrap();
        let given = ["[::1]:1", "[::2]:1", "10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"].iter().map(parse).collect();
        let wanted: Vec<SocketAddr> =
            ["[::1]:1", "10.0.0.1:1", "[::2]:1", "10.0.0.2:1", "10.0.0.3:1"].iter().map(parse).collect();
        assert_eq!(interleave(given), wanted);
    }

    #[tokio::test]
    async fn a_refused_address_is_named() {
        // Ours, and taking no connections.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let error = tcp("127.0.0.9", port, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!((error.stage, error.class), (Stage::Connect, Class::InfraDown));
        assert!(error.to_string().starts_with(&format!("connect to 127.0.0.9:{port}: Connection refused")), "{error}");
    }
}
