//! Connections of every service and consumer, read from the ledger when the page is asked for (proxy rule 9).
use crate::conn::ledger::{Counters, Ledger};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;

/// The collector over a daemon's ledger.
#[derive(Debug)]
pub(super) struct Connections(pub(super) Ledger);

type Row = (Arc<str>, Option<Arc<str>>, Counters);
type Read = fn(&Counters) -> u64;

const COUNTERS: &[(&str, &str, Read)] = &[
    ("connections_opened", "Connections that reached a backend", |c| c.opened),
    ("connections_refused_no_backend", "Connections refused for want of a backend", |c| c.refused_no_backend),
    ("connections_refused_limit", "Connections refused because the service had too many", |c| c.refused_limit),
    ("connections_refused_unreachable", "Connections refused because nothing was reached", |c| c.refused_unreachable),
    ("connections_refused_loop", "Connections refused because they would come back", |c| c.refused_loop),
    ("bytes_from_clients", "Bytes from clients to backends", |c| c.bytes_up),
    ("bytes_to_clients", "Bytes from backends to clients", |c| c.bytes_down),
];

impl Collector for Connections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.0.all_counters();
        for (name, help, read) in COUNTERS {
            family(&mut encoder, name, help, &rows, |counters| ConstCounter::new(read(counters)))?;
        }
        family(&mut encoder, "connections_active", "Connections now", &rows, |counters| {
            ConstGauge::new(i64::try_from(counters.active).unwrap_or(i64::MAX))
        })
    }
}

fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[Row],
    make: impl Fn(&Counters) -> M,
) -> Result<(), fmt::Error> {
    let Some((_, _, first)) = rows.first() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(name, help, None, make(first).metric_type())?;
    for (service, consumer, counters) in rows {
        let labels = [("service", &**service), ("consumer", consumer.as_deref().unwrap_or_default())];
        make(counters).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
