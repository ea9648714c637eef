//! The line to the engine: connect, list, listen; after any failure wait and begin anew, for ever (proxy rule 22).
use super::backoff;
use super::config::Timing;
use super::engine::{Connect, Engine, EngineError, Event, Listed};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// Events from a little before the list: what happens between the list and the subscription is not missed, and what is
/// told twice does no harm.
const OVERLAP: Duration = Duration::from_secs(2);
/// A connection that held this long begins the back-off anew.
const STABLE: Duration = Duration::from_secs(30);

/// What the line tells.
#[derive(Debug)]
pub(super) enum News {
    /// Connected; this is what runs.
    Up(Arc<dyn Engine>, Vec<Listed>),
    /// What runs, again.
    Listed(Vec<Listed>),
    /// Something happened.
    Event(Event),
    /// Not connected.
    Down(EngineError),
}

/// Nobody listens any more.
struct Over;

/// Tells until nobody listens. The channel is bounded: what is not taken stays with the engine.
pub(super) async fn run(connect: Arc<dyn Connect>, timing: Timing, tell: mpsc::Sender<News>) {
    let mut failures = 0;
    loop {
        let begun = Instant::now();
        let error = match attend(&*connect, timing, &tell).await {
            Ok(error) => error,
            Err(Over) => return,
        };
        failures = if begun.elapsed() >= STABLE { 1 } else { failures + 1 };
        if tell.send(News::Down(error)).await.is_err() {
            return;
        }
        let wait = backoff::wait(failures, timing.retry_first, timing.retry_most);
        tokio::select! {
            () = sleep(wait) => {}
            () = tell.closed() => return,
        }
    }
}

/// One connection, until it ends with an error.
async fn attend(connect: &dyn Connect, timing: Timing, tell: &mpsc::Sender<News>) -> Result<EngineError, Over> {
    let since = jiff::Timestamp::now().saturating_sub(OVERLAP).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let connected = async {
        let engine = connect.connect().await?;
        let list = engine.list().await?;
        Ok((engine, list))
    };
    let (engine, list) = match connected.await {
        Ok(connected) => connected,
        Err(error) => return Ok(error),
    };
    let mut events = engine.events(since);
    send(tell, News::Up(engine.clone(), list)).await?;
    let mut tick = interval_at(Instant::now() + timing.list_every, timing.list_every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => send(tell, News::Event(event)).await?,
                Some(Err(error)) => return Ok(error),
                None => {
                    let place = engine.about().endpoint;
                    return Ok(EngineError::away(format!("the engine at {place} ended its events")));
                }
            },
            _ = tick.tick() => match engine.list().await {
                Ok(list) => send(tell, News::Listed(list)).await?,
                Err(error) => return Ok(error),
            },
            () = tell.closed() => return Err(Over),
        }
    }
}

async fn send(tell: &mpsc::Sender<News>, news: News) -> Result<(), Over> {
    tell.send(news).await.map_err(|_| Over)
}
