//! The event stream: everything first, then what changed, at most once a second, and at once when a service changes.
use super::row::Row;
use super::rows::Source;
use bytes::Bytes;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout_at};

/// Content type of the stream.
pub(super) const TYPE: &str = "text/event-stream";
/// Readers at a time.
const READERS: usize = 64;
/// How often counters are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// Changes that come together are sent together.
const TOGETHER: Duration = Duration::from_millis(50);
/// A stream in which nothing happens says that it lives.
const SILENCE: Duration = Duration::from_secs(15);

/// Open event streams.
#[derive(Debug)]
pub(super) struct Feeds(Arc<Semaphore>);

impl Default for Feeds {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS)))
    }
}

/// One event. A reader replaces the rows that are in it and forgets those that are gone.
#[derive(Debug, Serialize)]
struct Update<'a> {
    /// When, in milliseconds since 1970: rates are made of it.
    at: i64,
    /// Whether these are all rows there are.
    whole: bool,
    rows: Vec<&'a Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<&'a str>,
}

impl Feeds {
    /// A stream of its own; `None` when there are too many.
    pub(super) fn open(&self, source: Arc<Source>) -> Option<mpsc::Receiver<Bytes>> {
        let place = Arc::clone(&self.0).try_acquire_owned().ok()?;
        let (sender, receiver) = mpsc::channel(2);
        tokio::spawn(async move {
            let _place = place;
            tokio::select! {
                () = sender.closed() => {}
                () = send_all(&source, &sender) => {}
            }
        });
        Some(receiver)
    }
}

/// Ends with the mesh or with the reader.
async fn send_all(source: &Source, sender: &mpsc::Sender<Bytes>) {
    let Some(mut changes) = source.mesh.upgrade().map(|mesh| mesh.changes()) else { return };
    let mut before: HashMap<String, Row> = HashMap::new();
    let mut told = Instant::now();
    let mut first = true;
    loop {
        let rows = source.rows();
        let event = event(&before, &rows, first);
        let quiet = told.elapsed() >= SILENCE;
        if let Some(text) = event.or_else(|| quiet.then(|| ": nothing changed\n\n".to_owned())) {
            if sender.send(text.into()).await.is_err() {
                return;
            }
            told = Instant::now();
        }
        before = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        first = false;
        match timeout_at(Instant::now() + PERIOD, changes.recv()).await {
            Ok(Err(tokio::sync::broadcast::error::RecvError::Closed)) => return,
            Ok(_) => {
                sleep(TOGETHER).await;
                changes = changes.resubscribe();
            }
            Err(_) => {}
        }
    }
}

/// The event that leads from `before` to `rows`; `None` when nothing changed.
fn event(before: &HashMap<String, Row>, rows: &[Row], whole: bool) -> Option<String> {
    let changed: Vec<&Row> = rows.iter().filter(|row| before.get(&row.id) != Some(row)).collect();
    let known: std::collections::HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let gone: Vec<&str> = before.keys().map(String::as_str).filter(|id| !known.contains(id)).collect();
    if !whole && changed.is_empty() && gone.is_empty() {
        return None;
    }
    let update = Update { at: jiff::Timestamp::now().as_millisecond(), whole, rows: changed, gone };
    let data = serde_json::to_string(&update).ok()?;
    Some(format!("event: rows\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, requests: u64) -> Row {
        let mut row = Row { id: id.into(), ..Row::default() };
        row.traffic.requests = requests;
        row
    }

    #[test]
    fn only_what_changed_is_sent_and_what_is_gone_is_named() {
        let before: HashMap<String, Row> = [row("a", 1), row("b", 1), row("c", 1)].map(|r| (r.id.clone(), r)).into();
        let text = event(&before, &[row("a", 1), row("b", 2)], false).unwrap();
        let data: serde_json::Value =
            serde_json::from_str(text.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["rows"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&data["rows"][0]["id"], &data["gone"][0], &data["whole"]),
            (&"b".into(), &"c".into(), &false.into())
        );
        assert_eq!(event(&before, &before.values().cloned().collect::<Vec<_>>(), false), None);
        assert!(event(&HashMap::new(), &[], true).is_some());
    }
}
