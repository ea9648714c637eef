//! The access log: lines are made where the request ends, and written by one thread.
use super::access::Done;
use super::config::{AccessFormat, AccessLog, Rotate};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing_appender::rolling::{Builder, RollingFileAppender, Rotation};

/// Lines that may wait for the disk.
const WAITING: usize = 8192;

/// The sending side; the writer ends when it is dropped, after what waits is written.
#[derive(Debug)]
pub(super) struct Log {
    lines: mpsc::Sender<String>,
    format: AccessFormat,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// Opens the file and starts the writer.
    pub(super) fn start(config: &AccessLog) -> Result<Self, String> {
        let cannot =
            |why: &dyn std::fmt::Display| format!("cannot write the access log {}: {why}", config.path.display());
        let file = open(config).map_err(|error| cannot(&error))?;
        let (lines, waiting) = mpsc::channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        let writer = std::thread::Builder::new().name("access-log".into());
        writer.spawn(move || write_all(file, waiting, &lost)).map_err(|error| cannot(&error))?;
        Ok(Self { lines, format: config.format, dropped })
    }

    /// Hands a line to the writer, or drops it when the writer is behind.
    pub(super) fn write(&self, service: &str, done: &Done<'_>, took: Duration) {
        let line = match self.format {
            AccessFormat::Json => json(service, done, took, Timestamp::now()),
            AccessFormat::Combined => combined(done, took, Timestamp::now()),
        };
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn open(config: &AccessLog) -> Result<RollingFileAppender, Box<dyn std::error::Error>> {
    let name = config.path.file_name().and_then(|name| name.to_str()).ok_or("it names no file")?;
    let parent = config.path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let (rotation, keep) = match config.rotate {
        Rotate::Never => (Rotation::NEVER, None),
        Rotate::Hourly => (Rotation::HOURLY, Some(config.keep)),
        Rotate::Daily => (Rotation::DAILY, Some(config.keep)),
    };
    let mut files = Builder::new().filename_prefix(name).rotation(rotation);
    if let Some(keep) = keep {
        files = files.max_log_files(keep.max(1));
    }
    Ok(files.build(parent.unwrap_or_else(|| Path::new(".")))?)
}

/// Writes until every sender is gone. Lines that are there together are written together; a disk that refuses is said once,
/// until it takes lines again.
fn write_all(mut file: RollingFileAppender, mut lines: mpsc::Receiver<String>, dropped: &AtomicU64) {
    let (mut failing, mut batch) = (false, String::new());
    while let Some(line) = lines.blocking_recv() {
        batch.clear();
        batch.push_str(&line);
        while batch.len() < 64 << 10
            && let Ok(line) = lines.try_recv()
        {
            batch.push_str(&line);
        }
        let result = file.write_all(batch.as_bytes()).and_then(|()| file.flush());
        if let Err(error) = &result
            && !failing
        {
            tracing::warn!(target: "stado::mesh", error = %error, "access_log_not_written");
        }
        failing = result.is_err();
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(target: "stado::mesh", lines = lost, "access_log_lines_dropped");
        }
    }
}

fn json(service: &str, done: &Done<'_>, took: Duration, now: Timestamp) -> String {
    let mut line = String::with_capacity(320);
    line.push_str("{\"time\":\"");
    let _ = write!(line, "{}\"", now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"));
    for (name, value) in [
        ("method", done.method),
        ("host", done.host),
        ("path", done.path),
        ("protocol", done.protocol),
        ("service", service),
        ("referer", done.referer),
        ("user_agent", done.agent),
    ] {
        let _ = write!(line, ",\"{name}\":{}", serde_json::Value::from(value));
    }
    let _ = write!(
        line,
        ",\"peer\":\"{}\",\"status\":{},\"bytes_in\":{},\"bytes_out\":{},\"ms\":{:.3}}}",
        done.peer,
        done.status,
        done.bytes_in,
        done.bytes_out,
        took.as_secs_f64() * 1e3
    );
    line.push('\n');
    line
}

fn combined(done: &Done<'_>, took: Duration, now: Timestamp) -> String {
    let began = now.checked_sub(took).unwrap_or(now);
    format!(
        "{} - - [{}] \"{} {} {}\" {} {} \"{}\" \"{}\"\n",
        done.peer.ip(),
        began.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        plain(done.method),
        plain(done.path),
        done.protocol,
        done.status,
        done.bytes_out,
        or_dash(done.referer),
        or_dash(done.agent),
    )
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { plain(text) }
}

/// A client must not be able to end a quoted field or a line: such characters are written as `\x22`, as other servers do.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\\') || c.is_control() {
            let mut bytes = [0u8; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "\\x{byte:02x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Observer;
    use super::*;
    use std::time::Instant;

    fn done<'a>(path: &'a str, agent: &'a str) -> Done<'a> {
        Done {
            method: "GET",
            host: "a.test:8088",
            path,
            protocol: "HTTP/1.1",
            status: 200,
            bytes_in: 1,
            bytes_out: 22,
            started: Instant::now(),
            peer: "127.0.0.1:5".parse().unwrap(),
            referer: "",
            agent,
        }
    }

    #[test]
    fn a_combined_line_is_what_other_servers_write() {
        let line = combined(&done("/a?b", "curl/8"), Duration::ZERO, Timestamp::UNIX_EPOCH);
        assert_eq!(line, "127.0.0.1 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b HTTP/1.1\" 200 22 \"-\" \"curl/8\"\n");
    }

    #[test]
    fn no_client_can_write_a_line_of_its_own() {
        let evil = "x\" 200 1\n127.0.0.1 \\ \u{1b}[31m\u{85}";
        let line = combined(&done("/", evil), Duration::ZERO, Timestamp::UNIX_EPOCH);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6, "{line}");
        assert!(!line.trim_end().chars().any(char::is_control), "{line:?}");
        let line = json("svc", &done("/", evil), Duration::ZERO, Timestamp::UNIX_EPOCH);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((line.matches('\n').count(), &value["user_agent"]), (1, &serde_json::Value::from(evil)));
        assert_eq!(
            (&value["service"], &value["status"], &value["bytes_out"]),
            (&"svc".into(), &200.into(), &22.into())
        );
    }

    #[test]
    fn every_line_is_in_the_file_when_the_observer_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let access = AccessLog {
            path: dir.path().join("access.log"),
            format: AccessFormat::Json,
            rotate: Rotate::Never,
            keep: 1,
        };
        let (observer, refused) = Observer::start(Some(&access));
        assert!(observer.logs() && refused.is_none());
        for _ in 0..100 {
            observer.request(None, &done("/x", ""));
        }
        drop(observer);
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::fs::read_to_string(&access.path).unwrap().lines().count() < 100 {
            assert!(Instant::now() < deadline, "lines are missing");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named_and_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let access =
            AccessLog { path: file.join("access.log"), format: AccessFormat::Combined, rotate: Rotate::Daily, keep: 7 };
        let (observer, refused) = Observer::start(Some(&access));
        assert!(refused.unwrap().starts_with("cannot write the access log "));
        observer.request(None, &done("/", ""));
    }
}
