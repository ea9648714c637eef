//! What a daemon knows of those that it, or a daemon before it, took over from: they are listed, with their open waits, for
//! as long as they say that they still have streams.
use super::parcel::{Comer, Remainder};
use super::wire::Wire;
use crate::conn::ledger::Ledger;
use crate::mesh::Mesh;
use crate::publish::Leavers;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a daemon that was told about is listed before it tells of itself.
const EXPECTED: Duration = Duration::from_secs(10);

/// Between two looks whether it is there at all.
const LOOK: Duration = Duration::from_millis(200);

/// The daemons that are leaving. Cheap to clone; all clones are one list.
#[derive(Clone)]
pub(in crate::daemon) struct Behind(Arc<Inner>);

struct Inner {
    listed: Mutex<BTreeMap<Key, Listed>>,
    ledger: Ledger,
    mesh: Mutex<Weak<Mesh>>,
    leavers: Mutex<Option<Leavers>>,
    over: CancellationToken,
}

/// A process and when it was taken over: pids come back.
type Key = (u32, String);

fn key(remainder: &Remainder) -> Key {
    (remainder.leaving.pid, remainder.leaving.since.clone())
}

struct Listed {
    remainder: Remainder,
    /// The connection that told last; a later one outlives an earlier one's end.
    turn: u64,
}

impl Behind {
    pub(in crate::daemon) fn new(ledger: Ledger) -> Self {
        let (listed, mesh, leavers) = Default::default();
        Self(Arc::new(Inner { listed, ledger, mesh, leavers, over: CancellationToken::new() }))
    }

    /// Where the list is told from now on.
    pub(in crate::daemon) fn tell(&self, mesh: Option<&Arc<Mesh>>, leavers: Option<Leavers>) {
        let mesh = mesh.map(Arc::downgrade).unwrap_or_default();
        *self.0.mesh.lock().unwrap_or_else(PoisonError::into_inner) = mesh;
        *self.0.leavers.lock().unwrap_or_else(PoisonError::into_inner) = leavers;
        self.publish();
    }

    /// Everyone on the list that has streams, as they told last.
    pub(in crate::daemon) fn all(&self) -> Vec<Remainder> {
        let all = self.listed();
        all.values()
            .map(|listed| &listed.remainder)
            .filter(|remainder| remainder.leaving.streams > 0)
            .cloned()
            .collect()
    }

    /// Lists a daemon that a predecessor knew; it is expected to tell of itself soon.
    pub(in crate::daemon) fn expect(&self, remainder: Remainder) {
        let (me, who) = (self.clone(), key(&remainder));
        let turn = self.enter(remainder, 0);
        tokio::spawn(async move {
            let until = Instant::now() + EXPECTED;
            while Instant::now() < until && is_there(who.0) {
                tokio::time::sleep(LOOK).await;
            }
            me.gone(&who, turn);
        });
    }

    /// Follows what `first`'s process says of itself on `wire`, until it is gone.
    pub(in crate::daemon) fn follow(&self, mut wire: Wire, first: Remainder) {
        let me = self.clone();
        tokio::spawn(async move {
            let who = key(&first);
            let mut turn = me.enter(first, 0);
            loop {
                let said = tokio::select! {
                    () = me.0.over.cancelled() => return,
                    said = wire.next::<Comer>() => said,
                };
                match said {
                    Ok((Comer::Remains(remainder), _)) if key(&remainder) == who => turn = me.enter(remainder, turn),
                    _ => break,
                }
            }
            me.gone(&who, turn);
        });
    }

    /// Knows nobody any more: they go to the daemon that took over from this one.
    pub(in crate::daemon) fn dissolve(&self) {
        self.0.over.cancel();
        self.listed().clear();
        self.tell(None, None);
    }

    /// `turn`: that of the same connection, or 0 for a new one.
    fn enter(&self, remainder: Remainder, turn: u64) -> u64 {
        self.0.ledger.merge_answers(&remainder.answers);
        let turn = {
            let mut listed = self.listed();
            let who = key(&remainder);
            let before = listed.get(&who).map_or(0, |listed| listed.turn);
            let turn = if turn == 0 { before + 1 } else { turn };
            listed.insert(who, Listed { remainder, turn });
            turn
        };
        self.publish();
        turn
    }

    fn gone(&self, who: &Key, turn: u64) {
        {
            let mut listed = self.listed();
            if listed.get(who).is_none_or(|listed| listed.turn != turn) {
                return;
            }
            listed.remove(who);
        }
        tracing::info!(target: "stado::mesh", pid = who.0, "predecessor_gone");
        self.publish();
    }

    fn publish(&self) {
        let all = self.all();
        let leaving: Vec<_> = all.iter().map(|remainder| remainder.leaving.clone()).collect();
        self.0.ledger.set_foreign_waits(all.into_iter().flat_map(|remainder| remainder.waits).collect());
        if let Some(mesh) = self.0.mesh.lock().unwrap_or_else(PoisonError::into_inner).upgrade() {
            mesh.set_leaving(leaving.clone());
        }
        if let Some(leavers) = &*self.0.leavers.lock().unwrap_or_else(PoisonError::into_inner) {
            leavers.set(leaving);
        }
    }

    fn listed(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Listed>> {
        self.0.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is such a process. Another one may have its pid by now: then the other one's silence tells.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
