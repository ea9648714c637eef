//! How far an address of this machine reaches: a container bridge is this machine's own, a network card is not.
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Who can connect to a listener on an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Only this machine, with the containers and virtual machines on it.
    Machine,
    /// Others too; why, as the end of a sentence that begins with the address.
    Beyond(String),
    /// The address is on no bridge and no interface that can be told, now.
    Absent,
}

/// How far `ip` reaches. Loopback and bridges without a network card in them stay on this machine. Where the system's
/// tables cannot be read, everything but loopback is [`Reach::Absent`]. Reads files: not for the data path.
pub fn reach(ip: IpAddr) -> Reach {
    reach_in(Path::new("/proc/net"), Path::new("/sys/class/net"), ip.to_canonical())
}

fn reach_in(proc: &Path, sys: &Path, ip: IpAddr) -> Reach {
    if ip.is_loopback() {
        return Reach::Machine;
    }
    if ip.is_unspecified() {
        return Reach::Beyond("is every interface of this machine".into());
    }
    let interface = match ip {
        IpAddr::V4(ip) => fs::read_to_string(proc.join("route")).ok().and_then(|table| by_route(&table, ip)),
        IpAddr::V6(ip) => fs::read_to_string(proc.join("if_inet6")).ok().and_then(|table| by_address(&table, ip)),
    };
    interface.map_or(Reach::Absent, |name| of_interface(sys, &name))
}

fn of_interface(sys: &Path, name: &str) -> Reach {
    let interface = sys.join(name);
    if name == "lo" {
        return Reach::Machine;
    }
    if !interface.join("bridge").is_dir() {
        return Reach::Beyond(format!("is on {name}, which is no bridge of this machine's own"));
    }
    let ports = fs::read_dir(interface.join("brif")).into_iter().flatten().flatten();
    let card = ports.map(|port| port.file_name()).find(|port| sys.join(port).join("device").exists());
    match card {
        None => Reach::Machine,
        Some(card) => Reach::Beyond(format!("is on {name}, which has the network card {} in it", card.display())),
    }
}

/// The interface that `ip`'s network is attached to, from `Iface Destination Gateway Flags RefCnt Use Metric Mask …`.
fn by_route(table: &str, ip: Ipv4Addr) -> Option<String> {
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(|n| u32::from_be_bytes(n.to_ne_bytes()));
    let rows = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, to, gateway, _, _, _, _, mask, ..] = fields.as_slice() else { return None };
        let (to, gateway, mask) = (word(to)?, word(gateway)?, word(mask)?);
        (gateway == 0 && mask != 0 && u32::from(ip) & mask == to).then(|| (mask, (*name).to_owned()))
    });
    rows.max_by_key(|(mask, _)| *mask).map(|(_, name)| name)
}

/// The interface that has `ip`, from `address index prefix scope flags name`.
fn by_address(table: &str, ip: Ipv6Addr) -> Option<String> {
    let wanted = format!("{:032x}", u128::from(ip));
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        (fields.next()? == wanted).then(|| fields.nth(4).map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with a card, a container bridge, and a bridge that has the card's neighbour in it.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for made in
            ["docker0/bridge", "docker0/brif/veth1", "veth1", "br0/bridge", "br0/brif/eth1", "eth1/device", "eth0"]
        {
            fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        let hex = |ip: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(ip));
        let row = |name: &str, to, gateway, mask| {
            format!("{name}\t{}\t{}\t0001\t0\t0\t0\t{}\t0\t0\t0\n", hex(to), hex(gateway), hex(mask))
        };
        let table = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            row("eth0", [0, 0, 0, 0], [192, 168, 1, 1], [0, 0, 0, 0]),
            row("eth0", [192, 168, 1, 0], [0, 0, 0, 0], [255, 255, 255, 0]),
            row("docker0", [172, 17, 0, 0], [0, 0, 0, 0], [255, 255, 0, 0]),
            row("br0", [172, 16, 0, 0], [0, 0, 0, 0], [255, 240, 0, 0]),
        ];
        fs::write(dir.path().join("route"), table.concat()).unwrap();
        fs::write(dir.path().join("if_inet6"), "fd000000000000000000000000000001 03 40 00 80 docker0\n").unwrap();
        dir
    }

    #[test]
    fn a_container_bridge_is_this_machines_and_everything_with_a_card_is_not() {
        let dir = machine();
        let of = |ip: &str| reach_in(dir.path(), dir.path(), ip.parse().unwrap());
        for ip in ["127.0.0.1", "127.8.8.8", "::1", "172.17.0.1", "fd00::1"] {
            assert_eq!(of(ip), Reach::Machine, "{ip}");
        }
        for (ip, why) in [("192.168.1.7", "eth0"), ("172.18.0.1", "eth1"), ("0.0.0.0", "every"), ("::", "every")] {
            assert!(matches!(of(ip), Reach::Beyond(text) if text.contains(why)), "{ip}: {:?}", of(ip));
        }
        for ip in ["10.0.0.1", "fd00::2"] {
            assert_eq!(of(ip), Reach::Absent, "{ip}");
        }
    }

    #[test]
    fn this_machines_own_tables_are_read() {
        assert_eq!(reach(Ipv4Addr::LOCALHOST.into()), Reach::Machine);
        assert!(matches!(reach(Ipv4Addr::UNSPECIFIED.into()), Reach::Beyond(_)));
    }
}
