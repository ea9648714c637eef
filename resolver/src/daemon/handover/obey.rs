//! A daemon that was taken over still carries streams: what the directory no longer allows ends here too. It hears of a change
//! by the generation that its successor publishes, and reads the registry once for each.
use crate::apply::held::Held;
use crate::conn::Ending;
use crate::conn::ledger::Ledger;
use stado_fleet::authority::{self, next_source};
use stado_fleet::directory::Directory;
use stado_fleet::ledger::{PublishedPaths, publisher};
use stado_fleet::link::Link;
use stado_fleet::store::RegistryStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two looks at what the successor publishes.
const LOOK: Duration = Duration::from_millis(300);

/// What it takes to follow.
pub(in crate::daemon) struct Obey {
    /// What was held last; the gate's sessions go by it.
    pub(in crate::daemon) holds: watch::Sender<Option<Arc<Held>>>,
    pub(in crate::daemon) store: Arc<dyn RegistryStore>,
    pub(in crate::daemon) link: Link,
    pub(in crate::daemon) paths: PublishedPaths,
}

impl Obey {
    /// Follows until it is dropped.
    pub(super) async fn run(self, ledger: &Ledger, endings: &[Ending]) {
        let held = self.holds.borrow().clone();
        let Some(mut held) = held else { return std::future::pending().await };
        let mut known = held.directory.generation().map(|generation| generation.0);
        loop {
            sleep(LOOK).await;
            let paths = self.paths.clone();
            // Files that cannot be read now are looked at again.
            let look = move || publisher(&paths).ok()?.alive()?.generation;
            let published = tokio::task::spawn_blocking(look).await.ok().flatten();
            if published.is_none() || published == known {
                continue;
            }
            let source = next_source(&held.snapshot, &held.target, self.store.clone());
            // What cannot be read now is read at the next look.
            if let Ok(Some(snapshot)) = authority::fetch(&source, &self.link).await {
                let directory = Directory::build(snapshot.valid.registry.clone(), held.target.clone());
                held = Arc::new(Held { snapshot, directory: Arc::new(directory), ..Held::clone(&held) });
                self.holds.send_replace(Some(held.clone()));
                end_forbidden(&held, ledger, endings);
                known = published;
            }
        }
    }
}

fn end_forbidden(held: &Held, ledger: &Ledger, endings: &[Ending]) {
    for (service, consumer, counters) in ledger.all_counters() {
        let Some(consumer) = consumer.filter(|_| counters.active > 0) else { continue };
        let (Ok(name), Ok(of)) = (service.parse(), consumer.parse()) else { continue };
        let Some(why) = held.forbids(&name, &of) else { continue };
        let ended = ledger.withdraw(&service, &consumer, &why);
        tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} ended {ended} connection(s): {why}");
        let theirs =
            |ending: &&Ending| ending.id().service == service && ending.id().consumer.as_ref() == Some(&consumer);
        endings.iter().filter(theirs).for_each(Ending::cut);
    }
}
