//! Requests of every service that is reached by hostname, read from the router's table when the page is asked for.
use super::metric_names::{self as names, Metric};
use crate::http::{BOUNDS_US, CLASSES, Counted, Site, Sites};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::sync::Arc;

/// The collector over the table in force.
#[derive(Debug)]
pub(super) struct Requests(pub(super) Arc<Sites>);

type Row = (Arc<Site>, Counted);

impl Collector for Requests {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let table = self.0.routes().load();
        let rows: Vec<Row> = table.sites().map(|site| (Arc::clone(site), site.stats.counted())).collect();
        if rows.is_empty() {
            return Ok(());
        }
        by_class(&mut encoder, &rows)?;
        latency(&mut encoder, &rows)?;
        let gauge = |counted: &Counted| ConstGauge::new(i64::try_from(counted.in_flight).unwrap_or(i64::MAX));
        family(&mut encoder, names::IN_FLIGHT, &rows, gauge)?;
        family(&mut encoder, names::BODIES_UP, &rows, |counted| ConstCounter::new(counted.bytes_in))?;
        family(&mut encoder, names::BODIES_DOWN, &rows, |counted| ConstCounter::new(counted.bytes_out))
    }
}

fn labels(site: &Site) -> [(&'static str, &str); 2] {
    [("service", &site.service), ("consumer", site.consumer.as_deref().unwrap_or_default())]
}

fn by_class(encoder: &mut DescriptorEncoder<'_>, rows: &[Row]) -> Result<(), fmt::Error> {
    let metric = names::REQUESTS;
    let mut family = encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Counter)?;
    for (site, counted) in rows {
        for (class, count) in CLASSES.iter().zip(counted.classes) {
            let [service, consumer] = labels(site);
            let labels = [service, consumer, ("class", *class)];
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn latency(encoder: &mut DescriptorEncoder<'_>, rows: &[Row]) -> Result<(), fmt::Error> {
    let metric = names::SECONDS;
    let mut family = encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Histogram)?;
    for (site, counted) in rows {
        // The last bucket has no bound: this encoder writes its largest number as `+Inf`.
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counted.latency).collect();
        let sum = counted.latency_sum_us as f64 / 1e6;
        let labels = labels(site);
        family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
            sum,
            counted.latency.iter().sum(),
            &buckets,
            None,
        )?;
    }
    Ok(())
}

fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    metric: Metric,
    rows: &[Row],
    make: impl Fn(&Counted) -> M,
) -> Result<(), fmt::Error> {
    let Some((_, first)) = rows.first() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(metric.name, metric.help, None, make(first).metric_type())?;
    for (site, counted) in rows {
        let labels = labels(site);
        make(counted).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rig::{Home, request};
    use crate::http::{Done, Observer};
    use stado_fleet::wire::RegisterRequest;
    use std::time::Instant;

    #[tokio::test]
    async fn requests_are_on_the_page_by_service_class_and_duration() {
        let home = Home::new();
        let mesh = home.start();
        assert!(!mesh.render_metrics().contains("stado_http_requests"));
        let web = RegisterRequest { kind: "http".into(), ..request("web", 9) };
        mesh.register(web, None).await.unwrap();
        let site = mesh.sites().routes().find("web.localhost").unwrap();
        let done = Done {
            method: "GET",
            host: "web.localhost",
            path: "/",
            protocol: "HTTP/1.1",
            status: 404,
            bytes_in: 2,
            bytes_out: 3,
            started: Instant::now(),
            peer: "127.0.0.1:1".parse().unwrap(),
            referer: "",
            agent: "",
        };
        Observer::default().request(Some(&site), &done);
        let page = mesh.render_metrics();
        for line in [
            r#"stado_http_requests_total{service="web",consumer="",class="4xx"} 1"#,
            r#"stado_http_requests_total{service="web",consumer="",class="2xx"} 0"#,
            r#"stado_http_request_seconds_count{service="web",consumer=""} 1"#,
            r#"stado_http_request_seconds_bucket{le="+Inf",service="web",consumer=""} 1"#,
            r#"stado_http_requests_in_flight{service="web",consumer=""} 0"#,
            r#"stado_http_bytes_from_clients_total{service="web",consumer=""} 2"#,
            r#"stado_http_bytes_to_clients_total{service="web",consumer=""} 3"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
