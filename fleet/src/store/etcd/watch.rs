//! Hearing of a change from the cluster. The watch goes on from the last revision that was seen, whichever connection or member
//! is lost, so that nothing in between is missed; a revision that was compacted away is begun anew with a read. While nothing
//! changes, a small read tells now and then that the member is still there.
use super::EtcdStore;
use super::api::Failed;
use super::shapes::{Line, Told, encoded};
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::http::Answer;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// Between two signs of life that are asked for.
const ALIVE: Duration = Duration::from_secs(15);
/// A watch itself may be silent for as long as nothing changes.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Between two attempts to watch again; twice as long each time.
const PAUSE: Duration = Duration::from_millis(50);
/// A line of a watch: the value is in it.
const LONGEST_LINE: usize = 128 << 20;

/// Why a stream is no longer read.
enum Ended {
    /// Another version is there.
    Changed(Option<StoreVersion>),
    /// The stream is lost; it goes on from the revision that was seen last.
    Lost(Failed),
    /// The revision that was asked for is compacted away: what is there now has to be read.
    Compacted,
}

impl EtcdStore {
    /// See [`crate::store::RegistryStore::watch`].
    pub(super) async fn wait(&self, held: Option<&StoreVersion>) -> Result<Option<StoreVersion>, Failed> {
        loop {
            let range = self.range(&self.key, true).await?;
            let now = range.version().map_err(|why| Failed::said(Class::Refused, why))?;
            if now.as_ref() != held {
                return Ok(now);
            }
            let seen = range.header.revision();
            let mut seen = seen.ok_or_else(|| Failed::said(Class::Refused, "it names no revision"))?;
            if let Some(changed) = self.from(&mut seen, held).await? {
                return Ok(changed);
            }
        }
    }

    /// Watches from after `seen`, again and again. `None`: the revision is gone, and a read has to come first.
    async fn from(&self, seen: &mut u64, held: Option<&StoreVersion>) -> Result<Option<Option<StoreVersion>>, Failed> {
        let mut lost_since: Option<Instant> = None;
        let mut pause = PAUSE;
        loop {
            let began = Instant::now();
            let ended = match self.open(*seen).await {
                Ok(stream) => self.follow(stream, seen, held).await,
                Err(failed) => Ended::Lost(failed),
            };
            let failed = match ended {
                Ended::Changed(version) => return Ok(Some(version)),
                Ended::Compacted => return Ok(None),
                Ended::Lost(failed) => failed,
            };
            // A stream that lived for a while was a good one.
            if began.elapsed() > self.gateway.timeout() {
                (lost_since, pause) = (None, PAUSE);
            }
            let since = *lost_since.get_or_insert_with(Instant::now);
            if since.elapsed() > self.gateway.timeout() {
                return Err(failed);
            }
            self.gateway.pass_on();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn open(&self, seen: u64) -> Result<Lines, Failed> {
        let body = json!({"create_request": {
            "key": encoded(self.key.as_bytes()),
            "start_revision": (seen + 1).to_string(),
            "progress_notify": true,
        }});
        let answer = self.gateway.stream("/v3/watch", &body).await?;
        Ok(Lines { answer: answer.may_be_silent(FOREVER), rest: Vec::new() })
    }

    async fn follow(&self, mut stream: Lines, seen: &mut u64, held: Option<&StoreVersion>) -> Ended {
        loop {
            let told = tokio::select! {
                told = stream.next() => told,
                ended = self.alive(held) => match ended {
                    Some(ended) => return ended,
                    None => continue,
                },
            };
            let told = match told {
                Ok(told) => told,
                Err(failed) => return Ended::Lost(failed),
            };
            if told.compact_revision.is_some() {
                return Ended::Compacted;
            }
            if told.canceled {
                return Ended::Lost(Failed::said(
                    Class::InfraDown,
                    format!("the watch was ended: {}", told.cancel_reason),
                ));
            }
            match told.events.last().map(super::shapes::Event::version) {
                Some(Ok(version)) if version.as_ref() != held => return Ended::Changed(version),
                Some(Err(why)) => return Ended::Lost(Failed::said(Class::Refused, why)),
                _ if told.created => {}
                _ => *seen = told.header.revision().unwrap_or(*seen).max(*seen),
            }
        }
    }

    /// After a while, asks whether anything changed: a member that is frozen keeps its connections, and says nothing.
    async fn alive(&self, held: Option<&StoreVersion>) -> Option<Ended> {
        tokio::time::sleep(ALIVE).await;
        match self.range(&self.key, true).await {
            Err(failed) => Some(Ended::Lost(failed)),
            Ok(range) => match range.version() {
                Ok(version) if version.as_ref() == held => None,
                Ok(version) => Some(Ended::Changed(version)),
                Err(why) => Some(Ended::Lost(Failed::said(Class::Refused, why))),
            },
        }
    }
}

/// The lines of a watch.
struct Lines {
    answer: Answer,
    rest: Vec<u8>,
}

impl Lines {
    /// May be dropped while it waits: what came so far is kept.
    async fn next(&mut self) -> Result<Told, Failed> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let line: Line = serde_json::from_slice(&line)
                    .map_err(|e| Failed::said(Class::Refused, format!("a line of its watch is not readable: {e}")))?;
                match (line.result, line.error) {
                    (Some(told), _) => return Ok(told),
                    (None, Some(error)) => {
                        return Err(Failed::said(Class::InfraDown, format!("the watch was ended: {error}")));
                    }
                    (None, None) => continue,
                }
            }
            if self.rest.len() > LONGEST_LINE {
                return Err(Failed::said(Class::Refused, "a line of its watch has no end"));
            }
            match self.answer.next().await {
                Ok(Some(data)) => self.rest.extend_from_slice(&data),
                Ok(None) => return Err(Failed::said(Class::InfraDown, "the watch ended")),
                Err(lost) => return Err(Failed::said(lost.class, lost.why)),
            }
        }
    }
}
