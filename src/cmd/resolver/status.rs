use super::live;
use super::probe::{self, listens};
use super::pulse::{Pulse, pulse};
use super::routes::Place;
use super::text::text;
use super::verdict::{self, Adapter, Authority, Facts, Policy, Report};
use crate::args::StatusArgs;
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use stado_fleet::authority::{Answer, Heard, Holders, Origin};
use stado_fleet::document::{Registry, ResolverPolicy};
use stado_fleet::fault::Class;
use stado_fleet::ledger::{self, Publisher};
use stado_fleet::name::{LogicalName, TargetName};
use stado_resolver::conn::holder_of;
use std::net::SocketAddr;
use std::time::Duration;

/// Where a mesh without a fleet has its resolution API.
const MESH_API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 17600);

/// A question to the authority that takes longer is answered from this host's copy, and says so: a first connection path
/// that is dead has been given up by then.
pub(super) const AUTHORITY: Duration = Duration::from_secs(8);

/// Whether the adapters' binds are tried. A try is a connection: whoever looks every second would be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binds {
    /// Each is connected to.
    Tried,
    /// What the resolver says of them is believed.
    Believed,
}

/// `resolver status`: exit 0 only when ready; every other verdict is the answer, not an error.
pub(crate) async fn status(args: StatusArgs, env: &Env) -> Verb {
    if let Some(seconds) = args.watch {
        return live::watch(Fleet::open(env)?, &args, Duration::from_secs(seconds)).await;
    }
    let report = report(&args, env).await?;
    print(&report, args.json)?;
    Ok(outcome(&report))
}

/// What `resolver status` tells; `stado status` has it as one of its parts.
pub(crate) async fn report(args: &StatusArgs, env: &Env) -> Result<Report, Failure> {
    let fleet = Fleet::open(env)?;
    let read = fleet.read_within(true, Some(AUTHORITY)).await;
    report_on(&fleet, args, &read, Binds::Tried).await
}

/// Exit 0 only for ready.
pub(super) fn outcome(report: &Report) -> Outcome {
    if report.verdict == "ready" { Outcome::Done } else { Outcome::No }
}

/// What is so now, given how the registry was read.
pub(super) async fn report_on(
    fleet: &Fleet,
    args: &StatusArgs,
    read: &Result<Answer, Failure>,
    binds: Binds,
) -> Result<Report, Failure> {
    let publisher = fleet.publisher()?;
    let facts = match read {
        Ok(answer) => fleet_facts(fleet, args, publisher, (answer, binds)).await?,
        Err(failure) if args.target.is_none() && tells(failure, &publisher) => {
            unread_facts(fleet, publisher, (failure, binds)).await
        }
        Err(failure) => return Err(failure.clone()),
    };
    Ok(verdict::conclude(with_strangers(facts), Timestamp::now()))
}

/// Names whoever listens at a port of a resolver that does not run.
fn with_strangers(mut facts: Facts) -> Facts {
    if facts.is_here && !facts.publisher.may_run() {
        let who = |bind: &str, listening: Option<bool>| {
            let bind: SocketAddr = bind.parse().ok().filter(|_| listening == Some(true))?;
            Some(holder_of(bind).unwrap_or_else(|| "another process".to_owned()))
        };
        facts.api_stranger = facts.api.as_ref().and_then(|(bind, listening)| who(bind, *listening));
        for adapter in &mut facts.adapters {
            adapter.stranger = adapter.bind.as_deref().and_then(|bind| who(bind, adapter.listening));
        }
    }
    facts
}

/// Whether there is something to tell without the registry: what a resolver has published here, that nobody said that this
/// host belongs to a fleet, or that the registry is away.
fn tells(failure: &Failure, publisher: &Publisher) -> bool {
    let published = !matches!(publisher, Publisher::Never { starting: None });
    published || failure.class == Class::NotFound || failure.class.retry_helps()
}

fn print(report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        ui::json(&serde_json::to_value(report).map_err(|e| Failure::here(e.to_string()))?)
    } else {
        ui::line(ui::clean::lines(text(report).as_bytes()))
    }
}

/// Without a registry: a mesh alone, whose authority nobody needs, or a host of a fleet that cannot read it.
async fn unread_facts(fleet: &Fleet, publisher: Publisher, (unread, binds): (&Failure, Binds)) -> Facts {
    let named = publisher.last().and_then(|state| state.target.clone());
    let expected = named.is_some()
        || unread.class != Class::NotFound
        || fleet.host.target.is_some()
        || fleet.last_good.read().is_err();
    let published = publisher.api();
    let bind = published.or(fleet.host.api_bind).unwrap_or(MESH_API);
    // An API that the resolver did not claim is not missed: its port may be somebody else's.
    let claimed = publisher.alive().is_none_or(|s| s.api_bind.is_some());
    let api = if claimed { Some((bind.to_string(), Some(listens(bind).await))) } else { None };
    let (pulse, adapters) = tokio::join!(pulse_of(&publisher), published_adapters(&publisher, binds));
    let mut facts = Facts {
        target: named.or_else(|| fleet.host.target.as_ref().map(ToString::to_string)),
        here: fleet.host.hostname.clone(),
        is_here: true,
        state_file: fleet.host.published.state.clone(),
        pulse,
        version: env!("CARGO_PKG_VERSION"),
        waits: waits(fleet),
        routes: Vec::new(),
        answers: ledger::AnswersFile::new(),
        heard: Vec::new(),
        unread: Vec::new(),
        policy: None,
        api,
        api_stranger: None,
        adapters,
        authority: Authority {
            target: None,
            source: "local",
            reachable: !expected,
            generation: None,
            detail: expected.then(|| unread.message.clone()),
            epoch: None,
        },
        registry_staleness_seconds: None,
        publisher,
    };
    add_history(fleet, &mut facts);
    facts
}

/// The adapters that the resolver says it has, for want of a registry.
async fn published_adapters(publisher: &Publisher, binds: Binds) -> Vec<Adapter> {
    let state = publisher.last().cloned().unwrap_or_default();
    let tried =
        state.adapters.iter().map(|adapter| adapter.bind.parse().ok().filter(|_| binds == Binds::Tried)).collect();
    let seen = probe::all_listen(tried, publisher.api()).await;
    let adapter = |(adapter, listening): (ledger::AdapterState, Option<bool>)| Adapter {
        service: adapter.service,
        consumer: adapter.consumer,
        bind: Some(adapter.bind),
        listening,
        stranger: None,
        place: None,
    };
    state.adapters.into_iter().zip(seen).map(adapter).collect()
}

/// Whether the resolver that runs answers.
async fn pulse_of(publisher: &Publisher) -> Option<Pulse> {
    let state = publisher.alive()?;
    Some(pulse(state.api_bind.as_deref()?.parse().ok()?, state.pid).await)
}

/// What went through the adapters and what services answered; without them there is a verdict all the same.
fn add_history(fleet: &Fleet, facts: &mut Facts) {
    let published = &fleet.host.published;
    match ledger::routes(published) {
        Ok(routes) => facts.routes = routes,
        Err(why) => facts.unread.push(why),
    }
    match ledger::answers(published) {
        Ok(answers) => facts.answers = answers,
        Err(why) => facts.unread.push(why),
    }
}

fn waits(fleet: &Fleet) -> Result<Vec<ledger::Wait>, String> {
    ledger::waits(&fleet.host.published).map(Option::unwrap_or_default)
}

async fn fleet_facts(
    fleet: &Fleet,
    args: &StatusArgs,
    publisher: Publisher,
    (answer, binds): (&Answer, Binds),
) -> Result<Facts, Failure> {
    let registry = &answer.snapshot.valid.registry;
    let published = publisher.last().and_then(|state| state.target.as_deref());
    let target = fleet.target(registry, args.target.as_deref().or(published))?;
    let policy = policy(registry, &target)?;
    let is_here = published == Some(target.as_str()) || fleet.is_here(registry, &target)?;
    let api = api_bind(fleet, &publisher, policy, is_here);
    let listening = if is_here { Some(listens(api).await) } else { None };
    let asked = async { if is_here { pulse_of(&publisher).await } else { None } };
    let (pulse, adapters) =
        tokio::join!(asked, adapters(fleet, &publisher, (registry, &target, policy), (is_here, binds)));
    let mut facts = Facts {
        here: here(fleet, registry),
        is_here,
        state_file: fleet.host.published.state.clone(),
        pulse,
        version: env!("CARGO_PKG_VERSION"),
        waits: if is_here { waits(fleet) } else { Ok(Vec::new()) },
        routes: Vec::new(),
        answers: ledger::AnswersFile::new(),
        heard: heard(fleet, registry, &target, is_here),
        unread: Vec::new(),
        policy: Some(Policy { refresh_seconds: policy.refresh_seconds, max_stale_seconds: policy.max_stale_seconds }),
        api: Some((api.to_string(), listening)),
        api_stranger: None,
        adapters,
        authority: authority_facts(answer),
        registry_staleness_seconds: staleness(answer),
        target: Some(target.to_string()),
        publisher,
    };
    if is_here {
        add_history(fleet, &mut facts);
    }
    Ok(facts)
}

/// What other hosts of the fleet told this one, when it is the authority.
fn heard(fleet: &Fleet, registry: &Registry, target: &TargetName, is_here: bool) -> Vec<Heard> {
    if !is_here || registry.directory.as_ref().is_none_or(|directory| directory.authority_target != *target) {
        return Vec::new();
    }
    let mut heard = Holders::new(&fleet.host.stado_home).report(Timestamp::now()).heard;
    heard.retain(|heard| {
        heard.holding.target != target.as_str() && registry.targets.contains_key(heard.holding.target.as_str())
    });
    heard
}

fn here(fleet: &Fleet, registry: &Registry) -> String {
    fleet.me(registry).ok().flatten().map_or_else(|| fleet.host.hostname.clone(), |me| me.to_string())
}

fn policy<'a>(registry: &'a Registry, target: &TargetName) -> Result<&'a ResolverPolicy, Failure> {
    registry.targets.get(target).and_then(|t| t.resolver.as_ref()).ok_or_else(|| {
        Failure::config(format!(
            "registry target has no service_resolver configuration: declare targets[{target}].service_resolver with api_bind, \
             refresh_seconds and max_stale_seconds"
        ))
    })
}

/// The bind that is in force here may be this host's own override.
fn api_bind(fleet: &Fleet, publisher: &Publisher, policy: &ResolverPolicy, is_here: bool) -> SocketAddr {
    let published = publisher.api();
    match is_here {
        true => published.or(fleet.host.api_bind).unwrap_or(policy.api_bind),
        false => policy.api_bind,
    }
}

async fn adapters(
    fleet: &Fleet,
    publisher: &Publisher,
    (registry, target, policy): (&Registry, &TargetName, &ResolverPolicy),
    (is_here, binds): (bool, Binds),
) -> Vec<Adapter> {
    let try_them = is_here && binds == Binds::Tried;
    let mut all = Vec::new();
    let mut tried = Vec::new();
    for adapter in &policy.adapters {
        let (service, consumer) = (adapter.service.to_string(), adapter.consumer.to_string());
        let given = || fleet.adapter_bind(publisher, &service, &consumer).filter(|_| is_here);
        let bind = adapter.bind.or_else(given);
        // Who listens there is not the resolver.
        let stranger = publisher.says_not_bound(&service, &consumer);
        tried.push(bind.filter(|_| try_them && !stranger));
        let listening = (try_them || is_here && stranger).then_some(false);
        let place = place(registry, target, &adapter.service);
        let bind = bind.map(|b| b.to_string());
        all.push(Adapter { service, consumer, bind, listening, stranger: None, place });
    }
    for (adapter, seen) in all.iter_mut().zip(probe::all_listen(tried, publisher.api()).await) {
        adapter.listening = seen.or(adapter.listening);
    }
    all
}

/// Where the directory places a service.
fn place(registry: &Registry, target: &TargetName, service: &LogicalName) -> Option<Place> {
    let service = registry.directory.as_ref()?.services.get(service)?;
    let endpoint = service.endpoints.get(&service.active_host)?;
    Some(Place {
        host: service.active_host.to_string(),
        endpoint: endpoint.addr.to_string(),
        local: service.active_host == *target,
    })
}

fn authority_facts(answer: &Answer) -> Authority {
    let directory = answer.snapshot.valid.registry.directory.as_ref();
    let reachable = answer.origin != Origin::LastGood;
    Authority {
        target: directory.map(|d| d.authority_target.to_string()),
        source: answer.source.kind(),
        reachable,
        generation: directory.map(|d| d.generation.0).filter(|_| reachable),
        detail: answer.cause.clone(),
        epoch: Some(answer.snapshot.valid.registry.succession.epoch).filter(|epoch| *epoch > 0),
    }
}

fn staleness(answer: &Answer) -> Option<u64> {
    let age = Timestamp::now().duration_since(answer.read_at).as_secs();
    (answer.origin == Origin::LastGood).then(|| u64::try_from(age).unwrap_or(0))
}
