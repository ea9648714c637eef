//! Open and ended connections as the local API tells them.
use super::live::Live;
use super::recent::{Outcome, Recent};
use super::slot::{Counters, Slot};
use super::waits::seconds;
use jiff::Timestamp;
use stado_fleet::wire::{Connection, ConnectionCounters, ConnectionList, RefusedCounters};
use std::cmp::Reverse;
use std::sync::Arc;

/// One service over all its slots, each with its consumer.
pub(super) fn connections(service: &str, slots: &[(Option<Arc<str>>, Arc<Slot>)], now: Timestamp) -> ConnectionList {
    let (mut open, mut ended) = (Vec::new(), Vec::new());
    let mut counters = Counters::default();
    for (consumer, slot) in slots {
        counters = counters.plus(slot.counters());
        open.extend(slot.open().into_iter().map(|live| (live.accepted, opened(&live, consumer.as_deref(), now))));
        ended.extend(slot.recent().into_iter().map(|recent| (recent.ended, over(&recent, consumer.as_deref()))));
    }
    open.sort_by_key(|(accepted, _)| *accepted);
    ended.sort_by_key(|(ended, _)| Reverse(*ended));
    let rows = |timed: Vec<(Timestamp, Connection)>| timed.into_iter().map(|(_, row)| row).collect();
    ConnectionList { service: service.to_owned(), counters: counted(counters), open: rows(open), ended: rows(ended) }
}

fn opened(live: &Live, consumer: Option<&str>, now: Timestamp) -> Connection {
    let (bytes_up, bytes_down) = live.bytes();
    Connection {
        client: live.client.to_string(),
        consumer: consumer.map(str::to_owned),
        since: seconds(live.accepted),
        duration_ms: millis(live.accepted, now),
        bytes_up,
        bytes_down,
        outcome: if live.opened().is_some() { "open" } else { "opening" }.to_owned(),
        reason: None,
        blame: None,
        hop: None,
    }
}

fn over(recent: &Recent, consumer: Option<&str>) -> Connection {
    Connection {
        client: recent.client.to_string(),
        consumer: consumer.map(str::to_owned),
        since: seconds(recent.accepted),
        duration_ms: millis(recent.accepted, recent.ended),
        bytes_up: recent.bytes_up,
        bytes_down: recent.bytes_down,
        outcome: recent.outcome.code().to_owned(),
        reason: match &recent.outcome {
            Outcome::Refused(why) | Outcome::ServiceReset(why) | Outcome::Withdrawn(why) => Some(why.to_string()),
            _ => None,
        },
        blame: recent.blame.map(|blame| blame.code().to_owned()),
        hop: recent.hop.map(|hop| hop.code().to_owned()),
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or_default()
}

fn counted(counters: Counters) -> ConnectionCounters {
    ConnectionCounters {
        opened: counters.opened,
        active: counters.active,
        refused: RefusedCounters {
            no_backend: counters.refused_no_backend,
            limit: counters.refused_limit,
            unreachable: counters.refused_unreachable,
            looped: counters.refused_loop,
        },
        withdrawn: counters.withdrawn,
        bytes_up: counters.bytes_up,
        bytes_down: counters.bytes_down,
    }
}
