//! `czekam` lines: a wait with no deadline is said when it begins and when it ends (fleet contract §7.1).
//! The lines go to the log target `stado::fleet`, at a level that short commands print on stderr too.
use crate::disk::{DiskError, Lock, LockAttempt};
use jiff::Timestamp;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A lock that is had within this is not worth a line.
const BLINK: Duration = Duration::from_millis(250);

/// A wait. Once announced it ends by [`Wait::settle`], [`Wait::done`] or [`Wait::failed`]; dropped without, as given up.
#[derive(Debug)]
pub struct Wait {
    what: String,
    place: String,
    id: String,
    began: Instant,
    opening: String,
    announced: bool,
}

/// Says `czekam: <what>; gdzie: <place>; rodzaj: <kind>; od: <UTC time>; id: <pid>-<n>`.
pub fn begin(what: &str, place: &str, kind: &str) -> Wait {
    let mut wait = quietly(what, place, kind);
    wait.announce();
    wait
}

/// A wait that is announced only when it turns out to be long.
pub fn quietly(what: &str, place: &str, kind: &str) -> Wait {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let opening = opening(what, place, kind, Timestamp::now(), &id);
    Wait { what: what.into(), place: place.into(), id, began: Instant::now(), opening, announced: false }
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

/// Takes an exclusive lock of a file; one that others hold for longer than a blink is said, with the file. Blocks for as long
/// as they hold it.
///
/// # Errors
/// A file that cannot be locked.
pub fn lock(what: &str, path: &Path) -> Result<Lock, DiskError> {
    match Lock::within(path, BLINK)? {
        LockAttempt::Held(lock) => Ok(lock),
        LockAttempt::Busy { .. } => {
            let wait = begin(what, &path.display().to_string(), "lock");
            wait.settle(Lock::exclusive(path))
        }
    }
}

/// As [`lock`], for what can be done without: given up after `limit`, which is said too. `Busy` when others still hold it.
///
/// # Errors
/// A file that cannot be locked.
pub fn lock_within(what: &str, path: &Path, limit: Duration) -> Result<LockAttempt, DiskError> {
    match Lock::within(path, BLINK)? {
        LockAttempt::Held(lock) => Ok(LockAttempt::Held(lock)),
        LockAttempt::Busy { .. } => {
            let wait = begin(what, &path.display().to_string(), "lock");
            let attempt = Lock::within(path, limit);
            match &attempt {
                Ok(LockAttempt::Busy { pid }) => {
                    let holder = pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"));
                    drop(wait.failed(&format!("{holder} still holds it")));
                    attempt
                }
                _ => wait.settle(attempt),
            }
        }
    }
}

impl Wait {
    /// Says the opening line, and gives it.
    pub fn announce(&mut self) -> String {
        self.announced = true;
        tracing::warn!(target: "stado::fleet", "{}", self.opening);
        self.opening.clone()
    }

    /// Ends the wait with what it waited for: `koniec czekania: …` or `blad czekania: …; przyczyna: <cause>`.
    pub fn settle<T, E: std::fmt::Display>(mut self, result: Result<T, E>) -> Result<T, E> {
        match &result {
            Ok(_) => self.tell(None),
            Err(e) => self.tell(Some(&e.to_string())),
        };
        result
    }

    /// It has come. A wait that was not announced ends without a word.
    pub fn done(mut self) {
        if self.announced {
            self.tell(None);
        }
    }

    /// It will not come; the line that is said, also of a wait that was not announced.
    pub fn failed(mut self, cause: &str) -> String {
        self.tell(Some(cause))
    }

    fn tell(&mut self, cause: Option<&str>) -> String {
        self.announced = false;
        let line = closing(&self.what, &self.place, self.began.elapsed().as_secs(), cause, &self.id);
        tracing::warn!(target: "stado::fleet", "{line}");
        line
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.announced {
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
    fn a_quiet_wait_gives_its_lines_to_whoever_asks() {
        let mut wait = quietly("x", "y", "vault");
        let opening = wait.announce();
        assert!(opening.starts_with("czekam: x; gdzie: y; rodzaj: vault; od: "), "{opening}");
        let failed = wait.failed("z");
        assert!(failed.starts_with("blad czekania: x; gdzie: y; trwalo: 0s; przyczyna: z; id: "), "{failed}");
        assert_eq!(failed.rsplit("id: ").next(), opening.rsplit("id: ").next());
    }

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
