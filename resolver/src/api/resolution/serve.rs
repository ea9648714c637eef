//! Accepting, answering, closing.
use super::answer::{self, Answer, Asked, MetricsText};
use super::request;
use crate::apply::held::HeldReader;
use crate::conn::ledger::Ledger;
use crate::conn::{Lendable, Lent};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests at once; a local API needs few, and a flood must not take the data path's descriptors.
const CONCURRENT: usize = 256;
/// How long a client may take to read its answer and close.
const GOODBYE: Duration = Duration::from_secs(2);
/// Requests that wait at once (`?wait=`), beside those that are being answered. Further ones are answered at once.
const WAITING: usize = 1024;

/// A running resolution API. Dropping it closes the listener; requests under way are answered.
#[derive(Debug)]
pub struct Resolution {
    bind: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
    lendable: Lendable,
}

#[derive(Clone)]
struct Shared {
    held: HeldReader,
    metrics: Option<MetricsText>,
    ledger: Ledger,
    stop: CancellationToken,
    waiting: Arc<Semaphore>,
}

impl Resolution {
    /// Starts answering on the bound listeners of one address.
    pub fn start(
        listeners: Vec<TcpListener>,
        bind: SocketAddr,
        held: HeldReader,
        metrics: Option<MetricsText>,
        ledger: Ledger,
    ) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let shared = Shared { held, metrics, ledger, stop: stop.clone(), waiting: Arc::new(Semaphore::new(WAITING)) };
        let slots = Arc::new(Semaphore::new(CONCURRENT));
        let listeners: Vec<_> = listeners.into_iter().map(Arc::new).collect();
        let lendable = Lendable::of(&listeners);
        for listener in listeners {
            tasks.spawn(accept(listener, shared.clone(), slots.clone(), tasks.clone()));
        }
        Self { bind, stop, tasks, lendable }
    }

    /// Where it listens.
    pub fn bind(&self) -> SocketAddr {
        self.bind
    }

    /// The listeners, to hand them over to another process.
    pub fn lend(&self) -> Vec<Lent> {
        self.lendable.lend()
    }

    /// Stops accepting and waits up to `grace` for answers under way; waits that `?wait=` asked for end at once.
    pub async fn close(self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(grace, self.tasks.wait()).await;
    }
}
impl Drop for Resolution {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

async fn accept(listener: Arc<TcpListener>, shared: Shared, slots: Arc<Semaphore>, tasks: TaskTracker) {
    loop {
        let slot = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            slot = slots.clone().acquire_owned() => slot,
        };
        let accepted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let shared = shared.clone();
                tasks.spawn(async move { one(stream, slot.ok(), &shared).await });
            }
            Err(error) => {
                tracing::warn!(target: "stado::fleet", "stado resolver resolution API cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// `slot`: its place among the requests that are served; given back while it waits, so that it holds nobody up.
async fn one(mut stream: TcpStream, mut slot: Option<OwnedSemaphorePermit>, shared: &Shared) {
    let read = tokio::select! {
        read = request::read(&mut stream) => read,
        () = shared.stop.cancelled() => return,
    };
    let answer = match read {
        Ok(request) => respond(answer::asked(&request), &stream, &mut slot, shared).await,
        Err(bad) => answer::bad_head(bad),
    };
    let Some(answer) = answer else { return };
    let goodbye = async {
        stream.write_all(&answer.bytes()).await?;
        stream.shutdown().await?;
        // Reading what the client still sends keeps a reset from overtaking the answer.
        let mut rest = [0_u8; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
}

/// `None`: nobody is there any more to be answered.
async fn respond(
    asked: Asked,
    client: &TcpStream,
    slot: &mut Option<OwnedSemaphorePermit>,
    shared: &Shared,
) -> Option<Answer> {
    Some(match asked {
        Asked::Now(answer) => answer,
        Asked::Health => answer::health(shared.held.borrow().as_deref(), jiff::Timestamp::now()),
        Asked::Metrics => answer::metrics(shared.metrics.as_ref()),
        Asked::Announce { clients, probe } => {
            let count = clients.len();
            shared.ledger.announce(clients, probe);
            answer::taken(count)
        }
        Asked::Resolve { service, consumer, wait } => {
            let mut held = shared.held.clone();
            let answer = answer::resolve(held.borrow_and_update().as_deref(), &service, &consumer);
            let place = if answer.status == 200 || wait.is_zero() { None } else { shared.waiting.try_acquire().ok() };
            let Some(_place) = place else { return Some(answer) };
            drop(slot.take());
            tokio::select! {
                answer = change(held, answer, &service, &consumer, wait) => answer,
                answer = asked_once_more(shared, &service, &consumer) => answer,
                // A client that only ended its half may still read.
                _ = client.ready(Interest::ERROR) => return None,
            }
        }
    })
}

/// The first change that makes the answer good, or the answer that holds when the wait is over.
async fn change(mut held: HeldReader, now: Answer, service: &str, consumer: &str, wait: Duration) -> Answer {
    let until = tokio::time::Instant::now() + wait;
    let mut answer = now;
    while answer.status != 200 {
        match tokio::time::timeout_at(until, held.changed()).await {
            Ok(Ok(())) => answer = answer::resolve(held.borrow_and_update().as_deref(), service, consumer),
            _ => break,
        }
    }
    answer
}

/// When this API stops, who waits is answered with what holds then.
async fn asked_once_more(shared: &Shared, service: &str, consumer: &str) -> Answer {
    shared.stop.cancelled().await;
    answer::resolve(shared.held.borrow().as_deref(), service, consumer)
}
