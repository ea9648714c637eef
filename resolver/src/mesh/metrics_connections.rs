//! Connections of every service and consumer, read from the ledger when the page is asked for (proxy rule 9).
use super::metric_names::{self as names, Metric};
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

const COUNTERS: &[(Metric, Read)] = &[
    (names::OPENED, |c| c.opened),
    (names::REFUSED_NO_BACKEND, |c| c.refused_no_backend),
    (names::REFUSED_LIMIT, |c| c.refused_limit),
    (names::REFUSED_UNREACHABLE, |c| c.refused_unreachable),
    (names::REFUSED_LOOP, |c| c.refused_loop),
    (names::WITHDRAWN, |c| c.withdrawn),
    (names::BYTES_UP, |c| c.bytes_up),
    (names::BYTES_DOWN, |c| c.bytes_down),
];

impl Collector for Connections {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.0.all_counters();
        for (metric, read) in COUNTERS {
            family(&mut encoder, *metric, &rows, |counters| ConstCounter::new(read(counters)))?;
        }
        family(&mut encoder, names::ACTIVE, &rows, |counters| {
            ConstGauge::new(i64::try_from(counters.active).unwrap_or(i64::MAX))
        })
    }
}

fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    metric: Metric,
    rows: &[Row],
    make: impl Fn(&Counters) -> M,
) -> Result<(), fmt::Error> {
    let Some((_, _, first)) = rows.first() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(metric.name, metric.help, None, make(first).metric_type())?;
    for (service, consumer, counters) in rows {
        let labels = [("service", &**service), ("consumer", consumer.as_deref().unwrap_or_default())];
        make(counters).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
