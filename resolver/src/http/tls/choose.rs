//! Which certificate a client is shown.
use super::identity::Identity;
use super::problem::TlsProblem;
use super::{Tls, authority};
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the files are looked at, at most.
const LOOK: Duration = Duration::from_secs(1);

impl Tls {
    /// The certificate for the name that the client asked for; for a client that named nothing, the one for the address
    /// it came to. What is configured comes before what the local authority makes, and an exact name before a wildcard.
    /// Where nothing is for the name, the first certificate is shown: the client sees whose it is, and 421 if it goes on.
    pub(super) fn choose(&self, sni: Option<&str>, local: IpAddr, now: Timestamp) -> Result<Arc<Identity>, TlsProblem> {
        let asked = sni.map_or_else(|| local.to_string(), str::to_owned);
        let all: Vec<Arc<Identity>> = self.shelves.iter().filter_map(super::shelf::Shelf::identity).collect();
        let (hold, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(|identity| identity.holds(now));
        let exact = hold.iter().find(|identity| identity.names.names_exactly(&asked));
        if let Some(found) = exact.or_else(|| hold.iter().find(|identity| identity.names.covers(&asked))) {
            return Ok(found.clone());
        }
        if let Some(authority) = &self.authority
            && authority::is_local(&asked)
        {
            return authority.leaf(&asked, now);
        }
        if let Some(identity) = ended.iter().find(|identity| identity.names.covers(&asked)) {
            return Err(expired(&asked, identity, now));
        }
        match (hold.into_iter().next(), ended.first()) {
            (Some(first), _) => Ok(first),
            (None, Some(identity)) => Err(expired(&asked, identity, now)),
            (None, None) => Err(TlsProblem::NoCertificate(asked)),
        }
    }

    /// Whether a certificate that holds at `now` is for `host`: the URL of a service begins with `https` where one is.
    pub fn serves(&self, host: &str, now: Timestamp) -> bool {
        let shelves = self.shelves.iter().filter_map(super::shelf::Shelf::identity);
        shelves.into_iter().any(|identity| identity.holds(now) && identity.names.covers(host))
            || self.authority.as_ref().is_some_and(|authority| authority.serves(host, now))
    }

    /// Looks at the files, at most once a second: whoever comes first looks, the others go on with what is there.
    pub(super) async fn look(self: &Arc<Self>) {
        {
            let Ok(mut looked) = self.looked.try_lock() else { return };
            if looked.elapsed() < LOOK {
                return;
            }
            *looked = Instant::now();
        }
        let tls = Arc::clone(self);
        // An error would mean that reading panicked; what was loaded stays.
        let _ = tokio::task::spawn_blocking(move || tls.refresh()).await;
    }

    pub(super) fn refresh(&self) {
        for shelf in &self.shelves {
            shelf.refresh();
        }
        if let Some(authority) = &self.authority {
            authority.refresh();
        }
    }
}

fn expired(asked: &str, identity: &Identity, now: Timestamp) -> TlsProblem {
    let early = now < identity.not_before;
    TlsProblem::NotInForce {
        asked: asked.to_owned(),
        early,
        at: if early { identity.not_before } else { identity.not_after },
    }
}
