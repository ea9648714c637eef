//! What this host's resolver has published, for the client of an object API that may be behind it (fleet contract §2.1,
//! §4.9).
use crate::last_good::LastGood;
use crate::ledger::{self, PublishedPaths, Publisher};
use crate::name::TargetName;
use crate::store::object::Routes;
use jiff::Timestamp;
use std::net::SocketAddr;
use std::time::Duration;

/// The published files of this host, and its copy, which declares how long a wait may be.
#[derive(Debug, Clone)]
pub struct PublishedRoutes {
    /// The published files.
    pub published: PublishedPaths,
    /// This host's copy.
    pub last_good: LastGood,
    /// Which target this host is, when somebody said so; else the one that published.
    pub me: Option<TargetName>,
}

impl Routes for PublishedRoutes {
    fn adapter(&self, service: &str, consumer: &str) -> Result<SocketAddr, String> {
        let publisher = ledger::publisher(&self.published).map_err(|e| e.to_string())?;
        let serves = publisher.alive().and_then(|state| {
            state.adapters.iter().find(|a| a.service == service && a.consumer == consumer)?.bind.parse().ok()
        });
        serves.ok_or_else(|| {
            let why = match &publisher {
                Publisher::Alive(_) => "this host's resolver publishes no such adapter".to_owned(),
                gone => gone.why_refused(service, consumer, "", &self.published.state).unwrap_or_default(),
            };
            format!(
                "the address stado://service/{service} for consumer {consumer} is an adapter's, and {why}; see `stado \
                 resolver status`"
            )
        })
    }

    fn held(&self, addr: SocketAddr) -> Option<String> {
        match ledger::waits(&self.published) {
            Err(sentence) => Some(sentence),
            Ok(None) => None,
            Ok(Some(waits)) => {
                // A list whose publisher is gone holds nobody.
                let publisher = ledger::publisher(&self.published).ok()?;
                let target = publisher.alive()?.target.as_deref().and_then(|target| target.parse().ok());
                let declared = self.me.clone().or(target).and_then(|me| self.refresh(&me));
                // A host without a copy stands behind held connections like any other.
                let refresh = declared.unwrap_or(ledger::UNDECLARED_REFRESH);
                ledger::held(&waits, addr, Timestamp::now(), refresh).map(|held| held.to_string())
            }
        }
    }
}

impl PublishedRoutes {
    /// The interval that this host declares in its copy.
    fn refresh(&self, me: &TargetName) -> Option<Duration> {
        let copy = self.last_good.read().ok()??;
        let policy = copy.snapshot.valid.registry.targets.get(me)?.resolver.as_ref()?;
        Some(Duration::from_secs(policy.refresh_seconds))
    }
}
