//! The accept loop: one task owns the listeners of a frontend and survives every error (proxy rule 7).
use super::Backend;
use super::bind::{self, Bound};
use super::descriptors::Claim;
use super::hold::Hold;
use super::listener::{self, Listener};
use super::shared::Shared;
use super::walk;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Shortest and longest pause after an error that a retry at once would only repeat.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often a missing half is tried again: fast at first, a holder that stays is asked seldom.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Runs until the frontend stops accepting, and gives the listeners back: dropping them closes them. `lane`: the one that it
/// runs on, if it does.
pub(super) async fn run(
    mut bound: Bound,
    listeners: Vec<Arc<std::net::TcpListener>>,
    shared: Arc<Shared>,
    lane: Option<usize>,
) -> Bound {
    let mut listeners = listeners.into_iter().filter_map(|listener| Listener::new(listener, &shared)).collect();
    accept_all(&mut listeners, &shared, lane).await;
    bound.listeners.extend(listeners.into_iter().filter_map(Listener::back));
    bound.missing_half = shared.missing_half();
    bound
}

async fn accept_all(listeners: &mut Vec<Listener>, shared: &Arc<Shared>, lane: Option<usize>) {
    // Both families, also while one is missing.
    let _counted = shared.context.descriptors.count(2);
    let mut turn = 0usize;
    let mut pause = PAUSE.0;
    let mut retry = RETRY.0;
    let mut retry_at = Instant::now() + retry;
    let mut stopped = pin!(shared.stop.cancelled());
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stopped => return,
            accepted = next(listeners, &mut turn, shared) => accepted,
            () = sleep_until(retry_at), if shared.misses_a_half() => {
                listeners.extend(retry_half(shared).await);
                retry = (retry * 2).min(RETRY.1);
                retry_at = Instant::now() + retry;
                continue;
            }
        };
        match accepted {
            Ok((client, peer)) => {
                pause = PAUSE.0;
                let admitted = tokio::select! {
                    biased;
                    admitted = wait_for_descriptors(client, shared) => admitted,
                    () = &mut stopped => return,
                };
                let (client, claim) = admitted;
                take(client, claim, peer, shared, lane);
            }
            Err(error) if ends_one_connection(&error) => {}
            Err(error) => {
                shared.context.descriptors.warn(&error.to_string(), shared.id.bind);
                tokio::select! {
                    () = &mut stopped => return,
                    () = sleep(pause) => {}
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// The next connection, once no other loop waits for descriptors, and while nothing holds all of them.
async fn next(listeners: &[Listener], turn: &mut usize, shared: &Shared) -> io::Result<(TcpStream, SocketAddr)> {
    let hold = &shared.context.hold;
    loop {
        while shared.context.descriptors.short() {
            sleep(PAUSE.0).await;
        }
        if let Some(accepted) = accept(listeners, turn, hold).await {
            return accepted;
        }
        hold.released().await;
    }
}

/// The next connection of any listener, or `None` when accepting is held; `turn` says which one is asked first, so that none
/// starves another.
async fn accept(listeners: &[Listener], turn: &mut usize, hold: &Hold) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    *turn = turn.wrapping_add(1);
    let first = *turn;
    poll_fn(|cx: &mut TaskContext<'_>| {
        if hold.is_held() {
            return Poll::Ready(None);
        }
        for at in 0..listeners.len() {
            let listener = listeners.get((first + at) % listeners.len());
            if let Some(Poll::Ready(accepted)) = listener.map(|l| l.poll_accept(cx)) {
                return Poll::Ready(Some(accepted));
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether the error says something about one connection that is gone already, and nothing about this listener.
fn ends_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, PermissionDenied, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | PermissionDenied | TimedOut | WouldBlock)
}

/// Descriptors of one connection: the client's and the backend's.
const PER_CONNECTION: usize = 2;

/// Holds one accepted client back while only the reserve is left; the others wait in the kernel's backlog.
async fn wait_for_descriptors(client: TcpStream, shared: &Shared) -> (TcpStream, Claim) {
    let descriptors = &shared.context.descriptors;
    if let Some(claim) = descriptors.claim(PER_CONNECTION, &client) {
        return (client, claim);
    }
    descriptors.warn("only the reserve of file descriptors is left", shared.id.bind);
    let _shortage = descriptors.mark_short();
    let mut pause = PAUSE.0;
    loop {
        sleep(pause).await;
        if let Some(claim) = descriptors.claim_later(PER_CONNECTION, &client) {
            return (client, claim);
        }
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// One load of the backend, then a task of its own: on a lane, or beside the session that leads to another host. What is
/// refused here costs no task.
fn take(client: TcpStream, claim: Claim, peer: SocketAddr, shared: &Arc<Shared>, near: Option<usize>) {
    let backend = shared.backend.load_full();
    let Some(entry) = walk::admit(&client, peer, &backend, shared) else { return };
    let far = matches!(&*backend, Backend::Fleet(route) if !route.local);
    let (lane, beside) = if far { (None, shared.beside(&backend)) } else { (shared.context.lanes.least(near), None) };
    let home = beside.as_ref().unwrap_or(&shared.home);
    let (runtime, place) = lane.map_or((home, None), |(runtime, place)| (runtime, Some(place)));
    let connection = walk::connection(client, backend, entry, claim, place, Arc::clone(shared));
    shared.connections.spawn_on(connection, runtime);
}

/// The missing half, if it can be had now.
async fn retry_half(shared: &Arc<Shared>) -> Option<Listener> {
    let half = bind::other_half(shared.id.bind)?;
    let error = match bind::listen(half) {
        Ok(bound) => {
            let listener = Listener::new(listener::unwatched(bound, shared)?, shared)?;
            shared.set_missing_half(None);
            return Some(listener);
        }
        Err(error) => error,
    };
    // Naming the holder walks the process table: not on a thread that serves.
    let clause = tokio::task::spawn_blocking(move || bind::describe_missing(&error)).await.ok()?;
    shared.set_missing_half(Some(clause));
    None
}
