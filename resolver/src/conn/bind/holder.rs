//! Who listens on an address, where this host's process table can be read.
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The process that listens on `addr` (or on its wildcard): `pid 123 (nginx)`, or `a process of user 33` when its
/// descriptors may not be read. `None` when nobody seems to listen or this system keeps no such table.
///
/// Walks the process table: for reports, never for the data path.
pub fn holder_of(addr: SocketAddr) -> Option<String> {
    let listener = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).filter_map(parse_row).find(|row| row.listens && covers(row.local, addr))
    })?;
    Some(process_of(listener.inode).unwrap_or_else(|| format!("a process of user {}", listener.uid)))
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    local: SocketAddr,
    listens: bool,
    uid: u32,
    inode: u64,
}

/// `sl local rem st tx:rx tr:tm retrnsmt uid timeout inode …`
fn parse_row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace();
    let local = parse_address(fields.nth(1)?)?;
    let state = fields.nth(1)?;
    let uid = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some(Row { local, listens: state == "0A", uid, inode })
}

/// `0100007F:3C68`: 32-bit words in this machine's byte order, then the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut octets = [0u8; 16];
            for (slot, at) in octets.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                slot.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(octets).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

fn covers(listener: SocketAddr, addr: SocketAddr) -> bool {
    listener.port() == addr.port()
        && (listener.ip() == addr.ip()
            || (listener.ip().is_unspecified() && (listener.is_ipv6() || listener.is_ipv4() == addr.is_ipv4())))
}

fn process_of(inode: u64) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let pid = fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        holds(&entry.path(), &wanted).then_some(pid)
    })?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("pid {pid} ({})", name.trim_end()))
}

fn holds(process: &Path, wanted: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_this_process_is_named_with_its_pid() {
        for host in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(listener) = std::net::TcpListener::bind(host) else { continue };
            let mut addr = listener.local_addr().unwrap();
            if addr.ip().is_unspecified() {
                addr.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            let holder = holder_of(addr).unwrap();
            assert!(holder.starts_with(&format!("pid {} (", std::process::id())), "{holder}");
        }
    }

    #[test]
    fn rows_of_both_tables_are_read() {
        let v4 = "   0: 0100007F:3C68 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0";
        let row = parse_row(v4).unwrap();
        assert_eq!(row, Row { local: "127.0.0.1:15464".parse().unwrap(), listens: true, uid: 1000, inode: 4242 });
        let v6 = "1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 01 0:0 0:0 0 33 0 9 1";
        let row = parse_row(v6).unwrap();
        assert_eq!(row, Row { local: "[::1]:80".parse().unwrap(), listens: false, uid: 33, inode: 9 });
        assert_eq!(parse_row("garbage"), None);
    }
}
