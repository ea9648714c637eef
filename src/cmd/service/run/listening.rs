//! Who listens on a loopback port: read from the kernel's table, so that the program is not disturbed by connections.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;

/// A port that was free a moment ago; the program binds it itself.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The loopback address at which somebody listens on `port`; IPv4 comes first.
pub(super) fn at(port: u16) -> Option<IpAddr> {
    match (table("/proc/net/tcp"), table("/proc/net/tcp6")) {
        (None, None) => connectable(port),
        (v4, v6) => {
            let rows = format!("{}\n{}", v4.unwrap_or_default(), v6.unwrap_or_default());
            listening(&rows, port)
        }
    }
}

fn table(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Where there is no table: a connection, closed at once.
fn connectable(port: u16) -> Option<IpAddr> {
    let both = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    both.into_iter().find(|ip| TcpStream::connect_timeout(&(*ip, port).into(), Duration::from_millis(100)).is_ok())
}

const V4: [&str; 2] = ["0100007F", "00000000"];
const V6_ANY: &str = "00000000000000000000000000000000";
const V6_LOOPBACK: &str = "00000000000000000000000001000000";
const LISTEN: &str = "0A";

/// Reads the rows `sl local_address rem_address st …`.
fn listening(rows: &str, port: u16) -> Option<IpAddr> {
    let port = format!("{port:04X}");
    let hosts: Vec<&str> = rows
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (local, state) = (words.nth(1)?, words.nth(1)?);
            let (host, at) = local.split_once(':')?;
            (state == LISTEN && at == port).then_some(host)
        })
        .collect();
    if hosts.iter().any(|host| V4.contains(host) || *host == V6_ANY) {
        Some(Ipv4Addr::LOCALHOST.into())
    } else {
        hosts.contains(&V6_LOOPBACK).then_some(Ipv6Addr::LOCALHOST.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_seen_and_a_closed_one_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(at(port), Some(Ipv4Addr::LOCALHOST.into()));
        drop(listener);
        assert_eq!(at(port), None);
    }

    #[test]
    fn rows_of_the_kernel_are_read() {
        let row = |host: &str, state: &str| format!("   0: {host}:1F90 00000000:0000 {state} 00000000:00000000");
        assert_eq!(listening(&row("0100007F", "0A"), 8080), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(listening(&row("0100007F", "01"), 8080), None);
        assert_eq!(listening(&row("0100007F", "0A"), 8081), None);
        assert_eq!(listening(&row(V6_LOOPBACK, "0A"), 8080), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(listening(&row(V6_ANY, "0A"), 8080), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
