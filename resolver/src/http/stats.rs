//! What is counted of one service's requests. Written with atomic adds by the data path, read by metrics and the index.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency histogram, in microseconds: 1 ms to 60 s.
pub const BOUNDS_US: [u64; 14] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 60_000_000,
];

/// Status classes, as they are labelled.
pub const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Requests of one service.
#[derive(Debug, Default)]
pub struct SiteStats {
    classes: [AtomicU64; CLASSES.len()],
    /// One count for each bound, and one for what is longer.
    latency: [AtomicU64; BOUNDS_US.len() + 1],
    latency_sum_us: AtomicU64,
    in_flight: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    last_error: Mutex<Option<LastError>>,
}

/// The last request that failed on the way to the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: jiff::Timestamp,
    /// Why, in words.
    pub cause: Arc<str>,
}

/// What was counted, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Answered requests, by [`CLASSES`].
    pub classes: [u64; CLASSES.len()],
    /// Answered requests by [`BOUNDS_US`], each on its own, and the longer ones last.
    pub latency: [u64; BOUNDS_US.len() + 1],
    /// All latencies together.
    pub latency_sum_us: u64,
    /// Requests now.
    pub in_flight: u64,
    /// Bytes of request bodies.
    pub bytes_in: u64,
    /// Bytes of response bodies.
    pub bytes_out: u64,
}

impl Counted {
    /// All answered requests.
    pub fn requests(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Answered with 500 or more.
    pub fn failed(&self) -> u64 {
        let [.., failed] = self.classes;
        failed
    }
}

/// One request's place among those that a service may have at a time; given back on drop.
#[derive(Debug)]
pub struct InFlight(Arc<SiteStats>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SiteStats {
    /// Takes a place unless `limit` are taken: then the request is answered as [`super::Problem::TooMany`].
    pub fn admit(self: &Arc<Self>, limit: usize) -> Option<InFlight> {
        let place = InFlight(Arc::clone(self));
        let taken = self.in_flight.fetch_add(1, Ordering::Relaxed);
        (taken < u64::try_from(limit).unwrap_or(u64::MAX)).then_some(place)
    }

    /// Counts one answered request.
    pub(super) fn answered(&self, status: u16, bytes_in: u64, bytes_out: u64, took: Duration) {
        let class = usize::from(status / 100).saturating_sub(1);
        if let Some(count) = self.classes.get(class).or(self.classes.last()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(count) = self.latency.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.latency_sum_us.fetch_add(us, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes_in, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes_out, Ordering::Relaxed);
    }

    /// Notes why a request did not reach the service, or lost it; the index shows the last one.
    pub fn failed(&self, cause: &str) {
        let error = LastError { at: jiff::Timestamp::now(), cause: cause.into() };
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The last failure, if there was one.
    pub fn last_error(&self) -> Option<LastError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            classes: self.classes.each_ref().map(read),
            latency: self.latency.each_ref().map(read),
            latency_sum_us: read(&self.latency_sum_us),
            in_flight: read(&self.in_flight),
            bytes_in: read(&self.bytes_in),
            bytes_out: read(&self.bytes_out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_class_and_by_how_long_they_took() {
        let stats = SiteStats::default();
        stats.answered(200, 3, 5, Duration::from_millis(1));
        stats.answered(204, 0, 0, Duration::from_micros(1_001));
        stats.answered(503, 0, 7, Duration::from_secs(3600));
        stats.answered(0, 0, 0, Duration::ZERO);
        let counted = stats.counted();
        assert_eq!(counted.classes, [1, 2, 0, 0, 1]);
        assert_eq!((counted.latency[0], counted.latency[1], counted.latency[14]), (2, 1, 1));
        assert_eq!((counted.requests(), counted.failed()), (4, 1));
        assert_eq!((counted.bytes_in, counted.bytes_out), (3, 12));
    }

    #[test]
    fn a_full_service_admits_nobody_and_places_come_back() {
        let stats = Arc::new(SiteStats::default());
        let first = stats.admit(1);
        assert!(first.is_some() && stats.admit(1).is_none());
        assert_eq!(stats.counted().in_flight, 1);
        drop(first);
        assert_eq!(stats.counted().in_flight, 0);
        assert!(stats.admit(1).is_some());
    }
}
