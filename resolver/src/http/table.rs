//! Hostname → site: one immutable table, swapped whole (design: route lookup reads one immutable value).
use super::site::Site;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;

/// Parts of a table. A change copies one of them, so its cost does not grow with the number of services.
const SHARDS: u32 = 256;

type Shard = HashMap<Arc<str>, Arc<Site>>;

/// The table in force. A request loads it once.
#[derive(Debug, Default)]
pub struct Routes(ArcSwap<Table>);

impl Routes {
    /// The table of this moment.
    pub fn load(&self) -> Arc<Table> {
        self.0.load_full()
    }

    /// The site for a normalised host at this moment.
    pub fn find(&self, host: &str) -> Option<Arc<Site>> {
        self.0.load().find(host).cloned()
    }

    /// Puts another table in force. Requests that have read the old one are not touched.
    pub fn store(&self, table: Table) {
        self.0.store(Arc::new(table));
    }
}

/// All hostnames and what stands behind them.
#[derive(Debug, Clone)]
pub struct Table {
    shards: Vec<Arc<Shard>>,
    wildcards: usize,
}

impl Default for Table {
    fn default() -> Self {
        let empty = Arc::new(Shard::new());
        Self { shards: (0..SHARDS).map(|_| Arc::clone(&empty)).collect(), wildcards: 0 }
    }
}

impl Table {
    /// The site of `host`, which is normalised already: the host itself, else the longest wildcard over it.
    pub fn find(&self, host: &str) -> Option<&Arc<Site>> {
        if let Some(site) = self.get(host) {
            return Some(site);
        }
        if self.wildcards == 0 {
            return None;
        }
        let mut wildcard = String::with_capacity(host.len() + 1);
        host.match_indices('.').find_map(|(at, _)| {
            wildcard.clear();
            wildcard.push('*');
            wildcard.push_str(host.get(at..)?);
            self.get(&wildcard)
        })
    }

    /// What is entered for exactly this hostname or wildcard.
    pub(super) fn get(&self, host: &str) -> Option<&Arc<Site>> {
        self.shards.get(shard_of(host))?.get(host)
    }

    /// Hostnames that a person could mean, in order; at most `max`.
    pub fn known(&self, max: usize) -> Vec<String> {
        let mut hosts: Vec<&Arc<str>> = self.shards.iter().flat_map(|shard| shard.keys()).collect();
        if hosts.len() > max {
            hosts.select_nth_unstable(max);
            hosts.truncate(max);
        }
        hosts.sort_unstable();
        hosts.into_iter().map(|host| host.to_string()).collect()
    }

    /// How many hostnames there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every site, in no order.
    pub fn sites(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.shards.iter().flat_map(|shard| shard.values())
    }

    /// Enters `site` under its host, or takes out what is entered for `host`. Other entries are shared with the table that
    /// this one was copied from.
    pub fn set(&mut self, host: &str, site: Option<Arc<Site>>) {
        let Some(shard) = self.shards.get_mut(shard_of(host)) else { return };
        if site.is_none() && !shard.contains_key(host) {
            return;
        }
        let shard = Arc::make_mut(shard);
        let (before, after) = (shard.contains_key(host), site.is_some());
        match site {
            Some(site) => drop(shard.insert(Arc::clone(&site.host), site)),
            None => drop(shard.remove(host)),
        }
        if host.starts_with("*.") {
            self.wildcards = self.wildcards + usize::from(after) - usize::from(before);
        }
    }
}

/// FNV-1a: even, and the same in every table.
fn shard_of(host: &str) -> usize {
    let hash = host.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    usize::try_from((hash ^ (hash >> 16)) % SHARDS).unwrap_or_default()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
