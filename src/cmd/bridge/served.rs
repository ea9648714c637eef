//! Waits until the daemon of this host serves an adapter, and tells its addresses.
use crate::cmd::fleet::Fleet;
use crate::exit::Failure;
use stado_fleet::document::PublishedUnit;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::forwards::Forwards;
use stado_fleet::ledger::{Publisher, ResolverState};
use stado_fleet::name::{Scheme, TargetName};
use stado_resolver::http::hostname;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LOOK: Duration = Duration::from_millis(50);

/// The addresses of one service on this host.
pub(super) struct Served {
    /// `tcp://127.0.0.1:20000`.
    pub(super) url: String,
    /// Its hostname, for an http service where the router runs.
    pub(super) hostname_url: Option<String>,
    /// The marker that names the first address.
    pub(super) marker: Option<PathBuf>,
}

/// An adapter that is waited for.
pub(super) struct Awaited<'a> {
    pub(super) service: &'a str,
    pub(super) consumer: &'a str,
    /// Declared bind, if one is.
    pub(super) bind: Option<&'a str>,
    /// The directory that declares it.
    pub(super) generation: Option<u64>,
}

/// Returns once it is bound. One that the daemon has seen and cannot serve is not waited for.
pub(super) async fn wait(
    fleet: &Fleet,
    me: &TargetName,
    wanted: &Awaited<'_>,
    patience: Duration,
) -> Result<Served, Failure> {
    let deadline = Instant::now() + patience;
    loop {
        let publisher = fleet.publisher()?;
        let state = publisher.alive();
        if let Some((state, bind)) = state.and_then(|state| Some((state, bound(state, wanted)?))) {
            return tell(fleet, state, wanted.service, &bind).await;
        }
        if Instant::now() >= deadline || state.is_some_and(|state| cannot(state, wanted)) {
            return Err(late(me, wanted, &publisher));
        }
        sleep(LOOK).await;
    }
}

fn bound(state: &ResolverState, wanted: &Awaited<'_>) -> Option<String> {
    let there = |found: &str| wanted.bind.is_none_or(|bind| bind == found);
    let mut adapters = state.adapters.iter();
    let of = |service: &str, consumer: &str| service == wanted.service && consumer == wanted.consumer;
    let adapter = adapters.find(|a| of(&a.service, &a.consumer) && there(&a.bind))?;
    Some(adapter.bind.clone())
}

fn cannot(state: &ResolverState, wanted: &Awaited<'_>) -> bool {
    wanted.generation.is_some() && state.generation >= wanted.generation && why_not(state, wanted).is_some()
}

fn why_not<'s>(state: &'s ResolverState, wanted: &Awaited<'_>) -> Option<&'s str> {
    let row = state.unserved.iter().find(|row| row.service == wanted.service && row.consumer == wanted.consumer);
    row.map(|row| row.reason.as_str())
}

async fn tell(fleet: &Fleet, state: &ResolverState, service: &str, bind: &str) -> Result<Served, Failure> {
    let answer = fleet.read(true).await?;
    let directory = answer.snapshot.valid.registry.directory.as_ref();
    let entry = directory.and_then(|directory| directory.services.get(service));
    let endpoint = entry.and_then(|entry| entry.endpoints.get(&entry.active_host));
    let scheme = endpoint.map_or(Scheme::Tcp, |endpoint| endpoint.scheme);
    let marker = Forwards::new(&fleet.host.forwards_dir).marker(service);
    let url = format!("{}://{bind}", scheme.as_str());
    // A service with two consumers here has no marker: it names no consumer.
    let told = std::fs::read_to_string(&marker).is_ok_and(|line| line.trim() == url);
    let published = entry.and_then(|entry| entry.published.as_ref());
    let hostname_url = (scheme == Scheme::Http).then(|| by_hostname(state, service, published)).flatten();
    Ok(Served { url, hostname_url, marker: told.then_some(marker) })
}

/// The address by hostname: the router of this host answers for the service as for its own index.
fn by_hostname(state: &ResolverState, service: &str, published: Option<&PublishedUnit>) -> Option<String> {
    let made = || hostname::of_service(service).ok();
    let host = published.and_then(|unit| unit.hostname.clone()).or_else(made)?;
    Some(state.index.as_ref()?.replacen(hostname::OWN, &host, 1))
}

fn late(me: &TargetName, wanted: &Awaited<'_>, publisher: &Publisher) -> Failure {
    let why = match publisher.alive() {
        None => "no resolver runs here; start it with `stado resolver serve`".to_owned(),
        Some(state) => why_not(state, wanted).map_or_else(
            || {
                let held = state.generation.map_or("none".to_owned(), |generation| generation.to_string());
                format!("its resolver is {} and holds generation {held}; see `stado resolver status`", state.state)
            },
            str::to_owned,
        ),
    };
    let Awaited { service, consumer, .. } = wanted;
    let sentence =
        format!("{me} is declared to use {service} as {consumer}, and no address is served for it yet: {why}");
    Failure::new(Class::Timeout, Blame::ThisHost, sentence)
}
