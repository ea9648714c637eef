//! What a list of waits says: one wait's sentence, blockers by route, and whether an adapter is held (fleet contract
//! §4.9, §4.10). Pure; `now` is passed in.
use super::Wait;
use jiff::Timestamp;
use std::net::SocketAddr;
use std::time::Duration;

/// The refresh interval of a host whose own cannot be read: the contract's default.
pub const UNDECLARED_REFRESH: Duration = Duration::from_secs(5);

/// Whole seconds since the wait began; 0 when it began after `now` or says nothing readable.
pub fn waited_seconds(wait: &Wait, now: Timestamp) -> u64 {
    let since = wait.since.parse::<Timestamp>().unwrap_or(now);
    u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0)
}

/// The sentence of one wait (§4.9), naming the client's socket when it was published.
pub fn wait_sentence(wait: &Wait, now: Timestamp) -> String {
    let Wait { service, consumer, bind, endpoint, active_host, .. } = wait;
    let waited = waited_seconds(wait, now);
    let what = match wait.phase.as_str() {
        "answer" => "for the first byte of an answer on an open channel",
        _ => "to open a channel",
    };
    let mut sentence = format!(
        "service {service} for consumer {consumer} at {bind} has waited {waited}s {what} to {endpoint} on {active_host}: \
         the client holds an accepted connection that receives nothing; ask that host what answers on {endpoint}"
    );
    if let Some(client) = &wait.client {
        sentence.push_str(&format!(" held by the client at {client}"));
        if let Some((_, port)) = client.rsplit_once(':') {
            sentence.push_str(&format!(": lsof -nP -i :{port} names the process still holding it"));
        }
    }
    sentence
}

/// The waits that are longer than the declared refresh interval, oldest first.
pub fn overdue(waits: &[Wait], now: Timestamp, refresh: Duration) -> Vec<&Wait> {
    let mut overdue: Vec<_> = waits.iter().filter(|w| waited_seconds(w, now) > refresh.as_secs()).collect();
    overdue.sort_by_key(|w| std::cmp::Reverse(waited_seconds(w, now)));
    overdue
}

/// One blocker for each route with overdue waits, the longest held first.
pub fn blockers(waits: &[Wait], now: Timestamp, refresh: Duration) -> Vec<String> {
    let mut routes: Vec<(&Wait, usize)> = Vec::new();
    let mut at = std::collections::HashMap::new();
    for wait in overdue(waits, now, refresh) {
        let index = *at.entry(route(wait)).or_insert(routes.len());
        match routes.get_mut(index) {
            Some((_, count)) => *count += 1,
            None => routes.push((wait, 1)),
        }
    }
    let sentence = |(oldest, count): (&Wait, usize)| match count {
        1 => wait_sentence(oldest, now),
        n => format!("{n} connections on one route, the oldest: {}", wait_sentence(oldest, now)),
    };
    routes.into_iter().map(sentence).collect()
}

fn route(wait: &Wait) -> [&str; 6] {
    [&wait.service, &wait.consumer, &wait.bind, &wait.phase, &wait.endpoint, &wait.active_host]
}

/// An adapter whose connections stand unanswered: a request through it would stand behind them (§4.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Connections that wait longer than the interval.
    pub count: usize,
    /// The interval this host declares, seconds.
    pub refresh_seconds: u64,
    /// The sentence of the oldest.
    pub oldest: String,
}

/// Whether the adapter at `bind` is held.
pub fn held(waits: &[Wait], bind: SocketAddr, now: Timestamp, refresh: Duration) -> Option<Held> {
    let at_bind = |w: &&Wait| w.bind.parse() == Ok(bind);
    let held: Vec<_> = overdue(waits, now, refresh).into_iter().filter(at_bind).collect();
    let oldest = wait_sentence(held.first()?, now);
    Some(Held { count: held.len(), refresh_seconds: refresh.as_secs(), oldest })
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "this host's resolver holds {} connection(s) on that adapter unanswered longer than the {}s refresh interval \
             it declares, so a request sent now would stand behind them: {}; `stado resolver status` lists every one",
            self.count, self.refresh_seconds, self.oldest
        )
    }
}
