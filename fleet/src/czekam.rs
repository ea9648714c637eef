//! `czekam` lines: a wait with no deadline is said when it begins and when it ends (fleet contract §7.1).
//! The lines go to the log target `stado::fleet`, at a level that short commands print on stderr too.
use jiff::Timestamp;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An announced wait. It ends by [`Wait::settle`]; dropped without it, it ends as given up.
#[derive(Debug)]
pub struct Wait {
    what: String,
    place: String,
    id: String,
    began: Instant,
    told: bool,
}

/// Says `czekam: <what>; gdzie: <place>; rodzaj: <kind>; od: <UTC time>; id: <pid>-<n>`.
pub fn begin(what: &str, place: &str, kind: &str) -> Wait {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let line = opening(what, place, kind, Timestamp::now(), &id);
    tracing::warn!(target: "stado::fleet", "{line}");
    Wait { what: what.into(), place: place.into(), id, began: Instant::now(), told: false }
}

/// Awaits `future` and announces it only when it takes longer than `blink`.
pub async fn when_long<T, E: std::fmt::Display>(
    blink: Duration,
    what: &str,
    place: &str,
    kind: &str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::pin!(future);
    tokio::select! {
        biased;
        result = &mut future => return result,
        () = tokio::time::sleep(blink) => {}
    }
    let wait = begin(what, place, kind);
    let result = future.await;
    wait.settle(result)
}

impl Wait {
    /// Ends the wait with what it waited for: `koniec czekania: …` or `blad czekania: …; przyczyna: <cause>`.
    pub fn settle<T, E: std::fmt::Display>(mut self, result: Result<T, E>) -> Result<T, E> {
        match &result {
            Ok(_) => self.tell(None),
            Err(e) => self.tell(Some(&e.to_string())),
        }
        result
    }

    fn tell(&mut self, cause: Option<&str>) {
        self.told = true;
        let line = closing(&self.what, &self.place, self.began.elapsed().as_secs(), cause, &self.id);
        tracing::warn!(target: "stado::fleet", "{line}");
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.told {
            self.tell(Some("given up"));
        }
    }
}

fn opening(what: &str, place: &str, kind: &str, now: Timestamp, id: &str) -> String {
    format!("czekam: {what}; gdzie: {place}; rodzaj: {kind}; od: {}; id: {id}", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

fn closing(what: &str, place: &str, seconds: u64, cause: Option<&str>, id: &str) -> String {
    match cause {
        None => format!("koniec czekania: {what}; trwalo: {seconds}s; id: {id}"),
        Some(cause) => {
            format!("blad czekania: {what}; gdzie: {place}; trwalo: {seconds}s; przyczyna: {cause}; id: {id}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_those_of_the_contract() {
        let now: Timestamp = "2026-10-20T10:00:00.5Z".parse().unwrap();
        assert_eq!(
            opening("GET /api/object", "object API http://127.0.0.1:1", "http", now, "7-1"),
            "czekam: GET /api/object; gdzie: object API http://127.0.0.1:1; rodzaj: http; od: 2026-10-20T10:00:00Z; id: 7-1"
        );
        assert_eq!(closing("x", "y", 3, None, "7-1"), "koniec czekania: x; trwalo: 3s; id: 7-1");
        assert_eq!(
            closing("x", "y", 3, Some("z"), "7-1"),
            "blad czekania: x; gdzie: y; trwalo: 3s; przyczyna: z; id: 7-1"
        );
    }
}
