use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::Ipv4Addr;

fn wanted(name: &str) -> Wanted<'_> {
    Wanted { owner: name, name, remembered: None, preferred: 0 }
}

#[test]
fn the_hash_is_fnv_1a_32() {
    assert_eq!(fnv1a(b""), 0x811c_9dc5);
    assert_eq!(fnv1a(b"a"), 0xe40c_292c);
    assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
}

#[test]
fn impossible_preferences_fall_through() {
    for preferred in [-1, 0, 65_536, 70_000, i64::MIN] {
        let ports: Vec<u16> = candidates(Wanted { preferred, ..wanted("x") }, 10, 12).map(|(port, _)| port).collect();
        assert_eq!(ports.len(), 3, "{preferred}");
    }
    let outside = candidates(Wanted { preferred: 80, ..wanted("x") }, 10, 12).next();
    assert_eq!(outside, Some((80, Stage::Preferred)), "a port outside the range is granted when it is free");
}

#[test]
fn a_port_kept_for_another_name_is_passed_over_and_a_backends_port_too() {
    let allocator = Allocator::new(Ipv4Addr::LOCALHOST.into(), 10, 12);
    assert!(allocator.reserve(10, "service a") && !allocator.reserve(10, "service b"));
    let give = |owner: &str, preferred| {
        let asked = Wanted { owner, name: "x", remembered: None, preferred };
        allocator.allocate_with(asked, |port| port == 11, |port, _| Some(port)).map(|found| found.port)
    };
    assert_eq!(give("service b", 10), Some(12));
    assert_eq!(give("service c", 10), None);
    assert_eq!(give("service a", 10), Some(10));
    allocator.transfer("service a", "service d");
    assert_eq!(allocator.holder(10).as_deref(), Some("service d"));
    allocator.release(10, "service a");
    assert!(allocator.holder(10).is_some(), "only the holder gives a port up");
    allocator.release_all("service d");
    assert_eq!(give("service c", 10), Some(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_allocations_never_share_a_port_and_then_the_range_is_exhausted() {
    let home = crate::mesh::rig::Home::new();
    let (min, max) = (home.first_port, home.first_port + 9);
    let allocator = Arc::new(Allocator::new(Ipv4Addr::LOCALHOST.into(), min, max));
    let each = (0..12).map(|turn| {
        let allocator = allocator.clone();
        tokio::task::spawn_blocking(move || {
            let name = format!("s{turn}");
            allocator.allocate(wanted(&name), |_| false)
        })
    });
    let found: Vec<Allocation> =
        futures_util::future::join_all(each).await.into_iter().filter_map(|found| found.unwrap()).collect();
    let ports: HashSet<u16> = found.iter().map(|allocation| allocation.port).collect();
    assert_eq!((found.len(), ports.len()), (10, 10));
    assert!(ports.iter().all(|port| (min..=max).contains(port)));
}

#[tokio::test]
async fn a_half_taken_port_is_passed_over_when_it_is_only_preferred() {
    let home = crate::mesh::rig::Home::new();
    let port = home.first_port;
    let Ok(_stranger) = std::net::TcpListener::bind(("::1", port)) else { return };
    let allocator = Allocator::new(Ipv4Addr::LOCALHOST.into(), port, port + 1);
    let preferred = allocator.allocate(Wanted { preferred: port.into(), ..wanted("a") }, |_| false).unwrap();
    assert_eq!((preferred.port, preferred.stage), (port + 1, Stage::Scanned));
    let remembered = allocator.allocate(Wanted { remembered: Some(port), ..wanted("b") }, |_| false).unwrap();
    assert_eq!((remembered.port, remembered.stage), (port, Stage::Remembered));
    assert!(remembered.bound.missing_half.is_some());
}

proptest! {
    /// Remembered first, preferred next, then the whole range once around from the name's place, no port twice.
    #[test]
    fn candidates_are_the_four_stages(
        name in "[a-z]{1,12}", min in 1u16..60_000, size in 1u16..200,
        remembered in proptest::option::of(1u16..), preferred in -10i64..70_000,
    ) {
        let max = min + size - 1;
        let all: Vec<(u16, Stage)> = candidates(Wanted { owner: "", name: &name, remembered, preferred }, min, max).collect();
        let ports: HashSet<u16> = all.iter().map(|(port, _)| *port).collect();
        prop_assert_eq!(ports.len(), all.len());
        prop_assert!((min..=max).all(|port| ports.contains(&port)));
        let order: Vec<u8> = all.iter().map(|(_, stage)| *stage as u8).collect();
        prop_assert!(order.is_sorted());
        let scanned: Vec<u16> = all.iter().filter(|(_, stage)| *stage == Stage::Scanned).map(|(port, _)| *port).collect();
        let start = u32::from(min) + fnv1a(name.as_bytes()) % u32::from(size);
        let place = |port: u16| (u32::from(port) + u32::from(size) - start) % u32::from(size);
        prop_assert!(scanned.iter().map(|port| place(*port)).is_sorted());
    }

    /// Any run of allocations and releases: two owners never hold one port.
    #[test]
    fn no_two_owners_hold_one_port(steps in proptest::collection::vec((0u8..6, -1i64..30, any::<bool>()), 1..60)) {
        let allocator = Allocator::new(Ipv4Addr::LOCALHOST.into(), 10, 14);
        let mut held: std::collections::HashMap<String, u16> = std::collections::HashMap::new();
        for (number, preferred, forget) in steps {
            let owner = format!("s{number}");
            if forget {
                allocator.release_all(&owner);
                held.remove(&owner);
                continue;
            }
            let remembered = held.get(&owner).copied();
            let asked = Wanted { owner: &owner, name: &owner, remembered, preferred };
            let Some(found) = allocator.allocate_with(asked, |_| false, |port, _| Some(port)) else { continue };
            prop_assert!(held.iter().all(|(other, port)| *other == owner || *port != found.port));
            prop_assert!(remembered.is_none_or(|port| port == found.port));
            held.insert(owner, found.port);
        }
    }
}
