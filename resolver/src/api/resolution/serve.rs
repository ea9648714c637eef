//! Accepting, answering, closing.
use super::answer::{self, Answer, Asked, MetricsText};
use super::request;
use crate::apply::held::HeldReader;
use crate::conn::{Lendable, Lent};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests at once; a local API needs few, and a flood must not take the data path's descriptors.
const CONCURRENT: usize = 256;
/// How long a client may take to read its answer and close.
const GOODBYE: Duration = Duration::from_secs(2);

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
    stop: CancellationToken,
}

impl Resolution {
    /// Starts answering on the bound listeners of one address.
    pub fn start(
        listeners: Vec<TcpListener>,
        bind: SocketAddr,
        held: HeldReader,
        metrics: Option<MetricsText>,
    ) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let shared = Shared { held, metrics, stop: stop.clone() };
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
                tasks.spawn(async move {
                    let _slot = slot;
                    one(stream, &shared).await;
                });
            }
            Err(error) => {
                tracing::warn!(target: "stado::fleet", "stado resolver resolution API cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn one(mut stream: TcpStream, shared: &Shared) {
    let read = tokio::select! {
        read = request::read(&mut stream) => read,
        () = shared.stop.cancelled() => return,
    };
    let answer = match read {
        Ok(request) => Some(respond(answer::asked(&request), shared).await),
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

async fn respond(asked: Asked, shared: &Shared) -> Answer {
    match asked {
        Asked::Now(answer) => answer,
        Asked::Health => answer::health(shared.held.borrow().as_deref(), jiff::Timestamp::now()),
        Asked::Metrics => answer::metrics(shared.metrics.as_ref()),
        Asked::Resolve { service, consumer, wait } => resolve(shared, &service, &consumer, wait).await,
    }
}

/// Answers at once when the answer is good or no wait was asked for; else on the first change that makes it good.
async fn resolve(shared: &Shared, service: &str, consumer: &str, wait: Duration) -> Answer {
    let mut held = shared.held.clone();
    let until = tokio::time::Instant::now() + wait;
    loop {
        let answer = answer::resolve(held.borrow_and_update().as_deref(), service, consumer);
        if answer.status == 200 || wait.is_zero() {
            return answer;
        }
        tokio::select! {
            changed = held.changed() => if changed.is_err() { return answer },
            () = tokio::time::sleep_until(until) => return answer,
            () = shared.stop.cancelled() => return answer,
        }
    }
}
