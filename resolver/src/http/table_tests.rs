use super::super::site::Protocol;
use super::*;
use crate::conn::ledger::Ledger;
use crate::conn::{Backend, FrontendId};
use proptest::prelude::*;
use std::time::Duration;

/// A site of its own for `host`, as good as any.
pub(crate) fn site(host: &str) -> Arc<Site> {
    let bind = "127.0.0.1:8088".parse().unwrap();
    let frontend = Arc::new(FrontendId { service: host.into(), consumer: None, bind });
    Arc::new(Site {
        service: host.into(),
        consumer: None,
        host: host.into(),
        protocol: Protocol::Http1,
        backend: Backend::None("not yet".into()),
        since: jiff::Timestamp::UNIX_EPOCH,
        budget: Duration::from_secs(3),
        slot: Ledger::new().slot(&frontend),
        frontend,
        stats: Arc::default(),
    })
}

fn table(hosts: &[&str]) -> Table {
    let mut table = Table::default();
    for host in hosts {
        table.set(host, Some(site(host)));
    }
    table
}

#[test]
fn the_host_itself_wins_then_the_longest_wildcard() {
    let table = table(&["a.localhost", "*.a.localhost", "*.b.a.localhost", "x.b.a.localhost", "*.localhost"]);
    let found = |host: &str| table.find(host).map(|site| site.host.to_string());
    for (host, wanted) in [
        ("a.localhost", "a.localhost"),
        ("z.a.localhost", "*.a.localhost"),
        ("x.b.a.localhost", "x.b.a.localhost"),
        ("y.b.a.localhost", "*.b.a.localhost"),
        ("p.q.b.a.localhost", "*.b.a.localhost"),
        ("b.a.localhost", "*.a.localhost"),
        ("c.localhost", "*.localhost"),
    ] {
        assert_eq!(found(host).as_deref(), Some(wanted), "{host}");
    }
    for host in ["localhost", "", ".", "other.test", "a.localhost.", "*.c.test"] {
        assert_eq!(found(host).filter(|found| !found.starts_with('*')), None, "{host}");
    }
    assert_eq!(found("other.test"), None);
}

#[test]
fn a_change_shares_every_other_site() {
    let before = table(&["a.test", "b.test"]);
    let mut after = before.clone();
    after.set("a.test", Some(site("a.test")));
    assert!(!Arc::ptr_eq(before.find("a.test").unwrap(), after.find("a.test").unwrap()));
    assert!(Arc::ptr_eq(before.find("b.test").unwrap(), after.find("b.test").unwrap()));
    after.set("a.test", None);
    assert!(after.find("a.test").is_none() && before.find("a.test").is_some());
}

#[test]
fn what_is_known_is_sorted_and_bounded() {
    let table = table(&["c.test", "a.test", "b.test"]);
    assert_eq!(table.known(2), ["a.test", "b.test"]);
    assert_eq!(table.known(9), ["a.test", "b.test", "c.test"]);
    assert_eq!((table.len(), Table::default().is_empty()), (3, true));
}

#[test]
fn a_table_in_force_is_replaced_whole() {
    let routes = Routes::default();
    let held = routes.load();
    routes.store(table(&["a.test"]));
    assert!(held.find("a.test").is_none() && routes.find("a.test").is_some());
}

proptest! {
    /// The table agrees with a plain map and the rule written the slow way.
    #[test]
    fn finding_is_exact_else_the_longest_wildcard(
        entered in proptest::collection::vec("(\\*\\.)?[ab](\\.[ab]){0,3}", 0..12),
        removed in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
        asked in "[abc](\\.[abc]){0,4}",
    ) {
        let mut table = Table::default();
        let mut plain: std::collections::BTreeSet<String> = entered.iter().cloned().collect();
        for host in &entered {
            table.set(host, Some(site(host)));
        }
        for at in removed.iter().filter(|_| !entered.is_empty()) {
            let host = at.get(&entered);
            table.set(host, None);
            plain.remove(host);
        }
        let covers = |entry: &str| entry == asked || entry.strip_prefix('*').is_some_and(|rest| asked.ends_with(rest));
        let slow = plain.iter().filter(|entry| covers(entry)).max_by_key(|entry| (**entry == asked, entry.len()));
        prop_assert_eq!(table.find(&asked).map(|site| site.host.to_string()), slow.cloned());
        prop_assert_eq!(table.len(), plain.len());
    }
}
