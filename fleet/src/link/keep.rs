//! What is done for sessions while nobody asks for them: the dead are ended, the unused closed, better paths returned to.
use super::handshake::establish;
use super::pool::{Key, Pool};
use super::session::Session;
use super::standing::Standing;
use super::wake::{self, Slept};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A timer that fires this late was not fired by a quiet host, but by a process that stood still.
const LATE: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to return to a better path.
const SELDOM: Duration = Duration::from_secs(300);

/// Follows one session to its end.
pub(super) async fn session(pool: Weak<Pool>, key: Key, session: Arc<Session>) {
    let Some((timing, host)) = pool.upgrade().map(|p| (p.config().timing.clone(), p.host(&key.host))) else { return };
    let since = Instant::now();
    let mut stable = false;
    loop {
        let unheard = timing.silence().saturating_sub(session.heard.silent_for());
        let pause = unheard.min(timing.idle / 2).min(if stable { Duration::MAX } else { timing.stable });
        let due = Instant::now() + pause;
        tokio::select! {
            () = session.facts.end.cancelled() => break,
            () = session.retired.cancelled(), if session.idle().is_some() => break,
            () = tokio::time::sleep_until(due.into()) => {}
        }
        if session.heard.silent_for() >= timing.silence() {
            // Only a process that stood still itself gives the host another chance.
            if due.elapsed() < LATE || !session.probe(timing.probe).await {
                session.cut(&format!("nothing came from the host for {}s", session.heard.silent_for().as_secs()));
                break;
            }
        }
        if !stable && since.elapsed() >= timing.stable {
            stable = true;
            host.stable();
        }
        if pool.strong_count() == 0 || session.idle().is_some_and(|idle| idle >= timing.idle) {
            break;
        }
    }
    if let Some(pool) = pool.upgrade() {
        if since.elapsed() < timing.stable && session.ended_by_itself() {
            host.died_young(Instant::now(), rand::random());
        }
        pool.forget(&key, &session);
    }
    if session.idle().is_some() {
        session.close().await;
    }
}

/// Looks out for this machine's sleep as long as the pool lives.
pub(super) async fn awake(pool: Weak<Pool>, clock: fn() -> Slept) {
    let mut before = clock();
    loop {
        tokio::time::sleep(wake::LOOK).await;
        let Some(pool) = pool.upgrade() else { return };
        let now = clock();
        if now.since(before) {
            pool.woke().await;
        }
        before = now;
    }
}

/// Tries the better paths of a host in between, more and more seldom, until one answers: then new streams take it, and the
/// sessions on the worse one end with their last streams.
pub(super) async fn return_home(pool: Weak<Pool>, key: Key, host: Arc<Standing>) {
    let Some(mut pause) = pool.upgrade().map(|p| p.config().timing.better_path) else { return };
    loop {
        tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
        pause = (pause * 2).min(SELDOM);
        let Some(pool) = pool.upgrade() else { return };
        let Some(position) = host.answered_last(&key.paths) else { return };
        let sessions = || {
            let all = pool.standing().into_iter();
            all.filter(|(other, _)| other.host == key.host && other.paths == key.paths).collect::<Vec<_>>()
        };
        if sessions().is_empty() {
            // Nobody uses the host: the next who does begins with the first path.
            host.home();
            return;
        }
        let Ok(turn) = host.turn.acquire().await else { return };
        for better in key.paths.iter().take(position) {
            let Ok(found) = establish(better, None, &pool).await else { continue };
            found.close().await;
            host.home();
            drop(turn);
            tracing::info!(target: "stado::fleet", "stado link: {} answers on its path {} again", key.host, better.name);
            // Twice: one that came to stand just before may not be listed yet.
            for _ in 0..2 {
                sessions().iter().filter(|(_, s)| s.path != better.name).for_each(|(key, s)| pool.forget(key, s));
                tokio::time::sleep(LATE).await;
            }
            return;
        }
    }
}
