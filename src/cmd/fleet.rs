//! What every verb of the fleet works with: this host's settings, its store, its copy, the link.
use crate::config::{Env, HostConfig};
use crate::exit::Failure;
use crate::ui;
use jiff::Timestamp;
use stado_fleet::authority::{self, Answer, Reading, Source};
use stado_fleet::document::{Registry, lookup_self};
use stado_fleet::last_good::{Copy, LastGood};
use stado_fleet::ledger::{self, Publisher};
use stado_fleet::link::Link;
use stado_fleet::name::TargetName;
use stado_fleet::store::RegistryStore;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The fleet, seen from this host.
pub(crate) struct Fleet {
    pub(crate) host: HostConfig,
    pub(crate) store: Arc<dyn RegistryStore>,
    pub(crate) last_good: LastGood,
    pub(crate) link: Link,
}

impl Fleet {
    /// Reads the settings and opens the store.
    pub(crate) fn open(env: &Env) -> Result<Self, Failure> {
        let host = HostConfig::read(env, None)?;
        let store = host.open_store()?;
        Ok(Self {
            last_good: LastGood::new(host.stado_home.join("cache")),
            link: Link::new(host.link.clone()),
            store,
            host,
        })
    }

    /// Reads the registry, saying on standard error what is not as it should be. `copy_may_answer`: only verbs that do
    /// nothing but read.
    pub(crate) async fn read(&self, copy_may_answer: bool) -> Result<Answer, Failure> {
        self.read_within(copy_may_answer, None).await
    }

    /// As [`Fleet::read`]; an authority that has not answered by then is taken for one that does not answer.
    pub(crate) async fn read_within(
        &self,
        copy_may_answer: bool,
        patience: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let answer = self.read_quietly(copy_may_answer, patience).await?;
        answer.notices.iter().for_each(ui::note);
        Ok(answer)
    }

    /// As [`Fleet::read_within`], and says nothing.
    pub(crate) async fn read_quietly(
        &self,
        copy_may_answer: bool,
        patience: Option<Duration>,
    ) -> Result<Answer, Failure> {
        let me = match self.me_before_reading() {
            Some(me) => Some(me),
            // A host that was replaced as the authority has no copy, and its own store tells whom it follows.
            None => {
                let own = authority::own_succession(self.store.as_ref()).await;
                own.and_then(|own| self.me(&own.registry).ok().flatten())
            }
        };
        let reading = Reading {
            me: me.as_ref(),
            store: Arc::clone(&self.store),
            last_good: &self.last_good,
            exec: &self.link,
            copy_may_answer,
            patience,
        };
        Ok(authority::read_for_verbs(reading, Timestamp::now()).await?)
    }

    /// Where the registry is read and written. A copy that cannot be read names nobody, and never founds a second fleet.
    pub(crate) async fn source(&self) -> Result<Source, Failure> {
        let me = |registry: &Registry| self.host.target.clone().or_else(|| self.me(registry).ok().flatten());
        let here = authority::here(&me, &self.store, &self.last_good).await?;
        here.notices.iter().for_each(ui::note);
        Ok(here.source)
    }

    /// This host's copy; a corrupt one is said on standard error by whoever reads the registry.
    pub(crate) fn copy(&self) -> Option<Copy> {
        self.last_good.read().unwrap_or_default()
    }

    fn me_before_reading(&self) -> Option<TargetName> {
        // Only a named identity, or a copy to look it up in, can tell; both are cheap to look at.
        self.host.target.clone().or_else(|| self.me_in(self.copy().as_ref()))
    }

    fn me_in(&self, copy: Option<&Copy>) -> Option<TargetName> {
        self.host.target.clone().or_else(|| self.me(&copy?.snapshot.valid.registry).ok().flatten())
    }

    /// Which target this host is; `None` when no target declares it. An error when two do.
    pub(crate) fn me(&self, registry: &Registry) -> Result<Option<TargetName>, Failure> {
        match &self.host.target {
            Some(target) => Ok(Some(target.clone())),
            None => Ok(lookup_self(registry, &self.host.hostname, &self.host.user)?),
        }
    }

    /// The target a verb is about: the one that was asked for, else this host. It has to be in the registry.
    pub(crate) fn target(&self, registry: &Registry, asked: Option<&str>) -> Result<TargetName, Failure> {
        let target = match asked {
            Some(text) => text.parse().map_err(|e| Failure::usage(format!("--target {text:?} {e}")))?,
            None => self.me(registry)?.ok_or_else(|| {
                Failure::config(format!("resolver host \"{}\" has no registry target identity", self.host.hostname))
            })?,
        };
        match registry.targets.contains_key(&target) {
            true => Ok(target),
            false => Err(Failure::not_found(format!("resolver target \"{target}\" is not registered"))),
        }
    }

    /// Whether `target` is this host.
    pub(crate) fn is_here(&self, registry: &Registry, target: &TargetName) -> Result<bool, Failure> {
        Ok(self.me(registry)?.as_ref() == Some(target))
    }

    /// What the resolver of this host has published.
    pub(crate) fn publisher(&self) -> Result<Publisher, Failure> {
        Ok(ledger::publisher(&self.host.published)?)
    }

    /// As [`Fleet::publisher`], for verbs that can do without: files that cannot be read are said.
    pub(crate) fn publisher_if_readable(&self) -> Publisher {
        let unknown = |why: &str| {
            ui::note(format_args!("what this host's resolver has published is not known: {why}"));
        };
        match self.publisher() {
            Ok(publisher) => {
                if let Some(why) = publisher.unreadable_sentence() {
                    unknown(&why);
                }
                publisher
            }
            Err(failure) => {
                unknown(&failure.message);
                Publisher::Never { starting: None }
            }
        }
    }

    /// The port that an adapter without a declared bind was given: by the running resolver, else as remembered.
    pub(crate) fn adapter_bind(&self, publisher: &Publisher, service: &str, consumer: &str) -> Option<SocketAddr> {
        let serving = publisher.alive().and_then(|state| {
            state.adapters.iter().find(|a| a.service == service && a.consumer == consumer)?.bind.parse().ok()
        });
        serving.or_else(|| self.remembered_bind(&format!("{service}/{consumer}")))
    }

    fn remembered_bind(&self, key: &str) -> Option<SocketAddr> {
        let file = self.host.stado_home.join("adapter-ports.json");
        let bytes = stado_fleet::disk::read(&file, 1 << 20).ok()??;
        let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let port = u16::try_from(value.get("ports")?.get(key)?.as_u64()?).ok().filter(|port| *port > 0)?;
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }
}
