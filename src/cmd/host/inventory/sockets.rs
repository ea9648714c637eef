//! The host's socket table.
use super::facts::{Fact, Facts, unhex};
use serde::Serialize;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One listening socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Listener {
    /// A literal, or `*` for every address.
    pub(super) address: String,
    pub(super) port: u16,
    /// Who holds it, when the account may see that.
    pub(super) pid: Option<u32>,
}

impl Listener {
    /// Whether a client on the host's own loopback reaches it.
    fn on_loopback(&self) -> bool {
        self.address.parse::<IpAddr>().map_or(self.address == "*", |ip| ip.is_loopback() || ip.is_unspecified())
    }
}

/// Whether somebody listens at this port of the host's loopback.
pub(super) fn listens(table: &[Listener], port: u16) -> bool {
    table.iter().any(|listener| listener.port == port && listener.on_loopback())
}

/// The table, sorted; `None` when the host could not read its own.
pub(super) fn table(facts: &Facts) -> Option<Vec<Listener>> {
    let mut table = match facts.one("listeners_from")?.text(0).as_str() {
        "proc" => of_proc(facts),
        "lsof" => of_lsof(facts),
        _ => return None,
    };
    table.sort_by(|a, b| (a.port, &a.address, a.pid.is_none()).cmp(&(b.port, &b.address, b.pid.is_none())));
    table.dedup_by(|a, b| (a.port, &a.address) == (b.port, &b.address));
    Some(table)
}

fn of_proc(facts: &Facts) -> Vec<Listener> {
    let owner = |fact: &Fact| Some((fact.text(0), fact.text(1).parse().ok()?));
    let owners: HashMap<String, u32> = facts.all("owner").filter_map(owner).collect();
    let listener = |fact: &Fact| {
        let (address, port) = proc_address(&fact.text(0))?;
        Some(Listener { address: address.to_string(), port, pid: owners.get(&fact.text(1)).copied() })
    };
    facts.all("listen").filter_map(listener).collect()
}

/// `0100007F:1F90`: words of an address as a little-endian machine prints them, and a port.
fn proc_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = unhex(address.as_bytes())?;
    bytes.chunks_mut(4).for_each(<[u8]>::reverse);
    let ip = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => {
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    Some((ip, port))
}

/// `p<pid>` lines, each followed by the `n<address>` lines of its sockets.
fn of_lsof(facts: &Facts) -> Vec<Listener> {
    let (mut table, mut pid) = (Vec::new(), None);
    for field in facts.all("lsof").map(|fact| fact.text(0)) {
        if let Some(text) = field.strip_prefix('p') {
            pid = text.parse().ok();
        } else if let Some((address, port)) = field.strip_prefix('n').and_then(|name| name.rsplit_once(':')) {
            let address = address.trim_start_matches('[').trim_end_matches(']').to_owned();
            table.extend(port.parse().ok().map(|port| Listener { address, port, pid }));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &str) -> Facts {
        Facts::parse(format!("stado-inventory 1\n{lines}\nstado-inventory end\n").as_bytes()).unwrap()
    }
    fn listener(address: &str, port: u16, pid: Option<u32>) -> Listener {
        Listener { address: address.into(), port, pid }
    }

    #[test]
    fn the_kernels_table_is_read_with_its_owners() {
        let lines = "listeners_from proc\nlisten 0100007F:1F90 11\nlisten 00000000000000000000000001000000:1538 12\n\
                     listen 00000000:0016 13\nlisten 0000000000000000FFFF00000100007F:0050 14\nlisten junk 15\nowner 11 4242\n\
                     owner 13 x\n";
        assert_eq!(
            table(&facts(lines)).unwrap(),
            [
                listener("0.0.0.0", 22, None),
                listener("127.0.0.1", 80, None),
                listener("::1", 5432, None),
                listener("127.0.0.1", 8080, Some(4242)),
            ]
        );
    }

    #[test]
    fn the_table_of_lsof_is_read() {
        let lines =
            "listeners_from lsof\nlsof p7\nlsof f3\nlsof n127.0.0.1:5432\nlsof n[::1]:5432\nlsof p8\nlsof n*:22\n";
        assert_eq!(
            table(&facts(lines)).unwrap(),
            [listener("*", 22, Some(8)), listener("127.0.0.1", 5432, Some(7)), listener("::1", 5432, Some(7))]
        );
    }

    #[test]
    fn a_table_that_nobody_could_read_is_none() {
        assert_eq!(table(&facts("listeners_from nothing")), None);
        assert_eq!(table(&facts("")), None);
        assert_eq!(table(&facts("listeners_from proc")), Some(Vec::new()));
    }

    #[test]
    fn loopback_reaches_its_own_and_every_address_and_no_other() {
        let reached = |address: &str| listens(&[listener(address, 80, None)], 80);
        assert!(["127.0.0.1", "127.0.0.2", "::1", "0.0.0.0", "::", "*"].into_iter().all(reached));
        assert!(!["192.0.2.1", "fe80::1", "x"].into_iter().any(reached));
        assert!(!listens(&[listener("127.0.0.1", 80, None)], 81));
    }
}
