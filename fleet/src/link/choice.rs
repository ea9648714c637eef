//! The choice of a carrier: made by asking the far side for its relay, once per session.
use super::error::{LinkError, Stage, seconds};
use super::exec::{self, ExecError};
use super::pool::{Key, Pool, Purpose};
use super::relay::{Multiplex, NoMultiplex};
use super::road::RoadKey;
use super::session::Session;
use super::stream::ChannelStream;
use crate::fault::Class;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A host without a multiplex is asked again after this long, or with its next session.
const ASK_AGAIN: Duration = Duration::from_secs(600);

/// What carries the streams to a host.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    Multiplex(Arc<Multiplex>),
    Direct { why: Arc<str>, path: Arc<str>, session: Weak<Session>, since: Instant },
}

impl Choice {
    /// Whether it need not be made anew.
    pub(super) fn holds(&self) -> bool {
        match self {
            Self::Multiplex(multiplex) => !multiplex.has_ended(),
            Self::Direct { session, since, .. } => {
                since.elapsed() < ASK_AGAIN && session.upgrade().is_some_and(|session| !session.has_ended())
            }
        }
    }
}

/// Starts the relay on the far side, where there is one.
pub(super) async fn ask(key: &RoadKey, pool: &Arc<Pool>) -> Result<Choice, LinkError> {
    let timing = &pool.config().timing;
    let session_key = Key { host: key.host.clone(), paths: key.paths.clone(), purpose: Purpose::Exec };
    let program = key.command.as_ref().map_or_else(|| "stado".to_owned(), |path| quoted(path));
    let command = format!("{program} resolver relay");
    let mut lost = String::new();
    // A session that was lost is replaced once, and one whose window is too small for the distance once.
    let mut fitted = false;
    for _ in 0..3 {
        let seat = pool.seat(&session_key).await?;
        let session = seat.session.clone();
        if !fitted && !pool.distances.fits(&session, timing).await {
            fitted = true;
            pool.forget(&session_key, &session);
            continue;
        }
        let direct = |why: String| Choice::Direct {
            why: format!("`{command}` there gave no multiplex: {why}").into(),
            path: session.path.as_str().into(),
            session: Arc::downgrade(&session),
            since: Instant::now(),
        };
        match timeout(timing.open, exec::start(seat, &command, timing)).await {
            Ok(Ok((channel, seat))) => {
                let stream = ChannelStream::drained(channel, seat);
                let started = Multiplex::start(stream, session.clone(), timing).await;
                return Ok(match started {
                    Ok(multiplex) => Choice::Multiplex(multiplex),
                    Err(NoMultiplex(why)) => direct(why),
                });
            }
            Ok(Err(ExecError::Failed(error))) => return Ok(direct(error.sentence)),
            Ok(Err(ExecError::SessionLost)) => {
                lost = session.lost();
                pool.forget(&session_key, &session);
            }
            Err(_) => return Ok(direct(format!("it did not start within {}", seconds(timing.open)))),
        }
    }
    Err(LinkError::new(Stage::Exec, Class::InfraDown, lost))
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
