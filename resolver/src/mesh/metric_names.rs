//! Every metric, once: name without the prefix `stado_`, type, what it tells, labels. `docs/metrics.md` has the same table.

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name on the page, without `stado_` in front; samples of a counter have `_total` behind it.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
}

const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: "counter", help, labels }
}

const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: "gauge", help, labels }
}

const fn histogram(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Metric {
    Metric { name, kind: "histogram", help, labels }
}

const ROW: &[&str] = &["service", "consumer"];

pub(super) const REGISTRATIONS: Metric = counter("mesh_registrations", "Registrations by result", &["result"]);
pub(super) const HEARTBEATS: Metric = counter("mesh_heartbeats", "Heartbeats by result", &["result"]);
pub(super) const ALLOCATIONS: Metric = counter("mesh_allocations", "Frontend ports by how they were found", &["stage"]);
pub(super) const EXPIRED: Metric = counter("mesh_leases_expired", "Leases that ran out", &[]);
pub(super) const SAVE_FAILURES: Metric = counter("mesh_state_save_failures", "State writes that failed", &[]);
pub(super) const SERVICES: Metric = gauge("mesh_services", "Known services by status", &["status"]);
pub(super) const LEASES: Metric = gauge("mesh_leases", "Live leases", &[]);
pub(super) const FRONTENDS: Metric = gauge("mesh_frontends", "Bound frontends", &[]);
pub(super) const EVENT_READERS: Metric = gauge("mesh_event_readers", "Open event streams", &[]);
pub(super) const OPENED: Metric = counter("connections_opened", "Connections that reached a backend", ROW);
pub(super) const REFUSED_NO_BACKEND: Metric =
    counter("connections_refused_no_backend", "Connections refused for want of a backend", ROW);
pub(super) const REFUSED_LIMIT: Metric =
    counter("connections_refused_limit", "Connections refused because the service had too many", ROW);
pub(super) const REFUSED_UNREACHABLE: Metric =
    counter("connections_refused_unreachable", "Connections refused because nothing was reached", ROW);
pub(super) const REFUSED_LOOP: Metric =
    counter("connections_refused_loop", "Connections refused because they would come back", ROW);
pub(super) const WITHDRAWN: Metric =
    counter("connections_withdrawn", "Connections ended because the directory no longer allows them", ROW);
pub(super) const RELAY_WITHDRAWN: Metric = counter(
    "relay_streams_withdrawn",
    "Streams of other hosts ended by this host's gate because the directory no longer allows them",
    &["service", "host"],
);
pub(super) const BYTES_UP: Metric = counter("bytes_from_clients", "Bytes from clients to backends", ROW);
pub(super) const BYTES_DOWN: Metric = counter("bytes_to_clients", "Bytes from backends to clients", ROW);
pub(super) const ACTIVE: Metric = gauge("connections_active", "Connections now", ROW);
pub(super) const REQUESTS: Metric =
    counter("http_requests", "Requests answered by hostname", &["service", "consumer", "class"]);
pub(super) const SECONDS: Metric = histogram("http_request_seconds", "How long requests took", ROW);
pub(super) const IN_FLIGHT: Metric = gauge("http_requests_in_flight", "Requests now", ROW);
pub(super) const BODIES_UP: Metric = counter("http_bytes_from_clients", "Bytes of request bodies", ROW);
pub(super) const BODIES_DOWN: Metric = counter("http_bytes_to_clients", "Bytes of response bodies", ROW);

/// All of them, in the order of the page.
pub const ALL: &[Metric] = &[
    REGISTRATIONS,
    HEARTBEATS,
    ALLOCATIONS,
    EXPIRED,
    SAVE_FAILURES,
    SERVICES,
    LEASES,
    FRONTENDS,
    EVENT_READERS,
    OPENED,
    REFUSED_NO_BACKEND,
    REFUSED_LIMIT,
    REFUSED_UNREACHABLE,
    REFUSED_LOOP,
    WITHDRAWN,
    RELAY_WITHDRAWN,
    BYTES_UP,
    BYTES_DOWN,
    ACTIVE,
    REQUESTS,
    SECONDS,
    IN_FLIGHT,
    BODIES_UP,
    BODIES_DOWN,
];
