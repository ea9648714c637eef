use super::look::Look;
use super::reach::{Reach, available, reach};
use super::through::Through;
use crate::args::ConnectArgs;
use crate::cmd::observations::{Observation, Observations, fact};
use crate::cmd::probe::{self, Answered};
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::json;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::ledger::{Publisher, Unserved};
use stado_fleet::name::TargetName;
use std::net::SocketAddr;

/// What a connect found out.
struct Connected {
    service: String,
    placed_on: String,
    from: String,
    reach: Reach,
}

/// `service directory connect`: the address to connect to, tried when this host is the one that asks.
pub(crate) async fn connect(args: ConnectArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let (name, service) = look.service(&args.name)?;
    let target = look.target(args.target.as_deref())?;
    let publisher = look.fleet.publisher_if_readable();
    let here = look.fleet.is_here(look.registry(), &target)?;
    let given = |service: &str, consumer: &str| look.fleet.adapter_bind(&publisher, service, consumer).filter(|_| here);
    available(look.registry(), name, service).map_err(refused_until_then)?;
    let reach = reach(look.registry(), (name, service), &target, args.consumer.as_deref(), &given)
        .map_err(|failure| if here { without_port(&publisher, name.as_str(), failure) } else { failure })?;
    let found = Connected {
        service: name.to_string(),
        placed_on: service.active_host.to_string(),
        from: target.to_string(),
        reach,
    };
    let answered = match here {
        true if !args.no_verify => Some(verify(&look, &target, &found).await?),
        true => {
            served(&look, &found)?;
            None
        }
        false => None,
    };
    if answered.is_none() {
        record(&look, &found, "unverified", format!("handed out untried: {}", found.reach.url()));
    }
    print(&look, &args, &found, answered)?;
    Ok(Outcome::Done)
}

/// Tries the address, unless the resolver of this host holds connections there that nobody answers. What was seen is
/// recorded either way.
async fn verify(look: &Look, target: &TargetName, found: &Connected) -> Result<Answered, Failure> {
    let Reach { scheme, addr, consumer } = &found.reach;
    let result = match consumer {
        None => match led_back(look, &found.service) {
            Some(why) => Err(why),
            None => probe::answers(*scheme, *addr).await.map_err(|why| misplaced(look, *addr, why)),
        },
        Some(consumer) => {
            let policy = look.registry().targets.get(target).and_then(|t| t.resolver.as_ref());
            Through::new(look, &found.service, consumer, *addr).tried(*scheme, policy).await
        }
    };
    let (state, detail) = match &result {
        Ok(answered) => ("observed", answered.to_string()),
        Err(why) => ("unreachable", why.clone()),
    };
    record(look, found, state, detail);
    result.map_err(|why| {
        let Connected { service, placed_on, reach, .. } = found;
        let sentence = format!("{service} is placed on {placed_on} and did not answer at {}: {why}", reach.url());
        Failure::new(Class::InfraDown, Blame::Service, sentence)
    })
}

/// An endpoint of this host may be where an adapter was to be: the directory names the wrong address.
fn misplaced(look: &Look, addr: SocketAddr, why: String) -> String {
    let said = look.fleet.publisher().ok().and_then(|publisher| publisher.unserved_at(&addr.to_string()));
    let itself = || "nothing is between this command and that address: the service itself failed".to_owned();
    format!("{why}; {}", said.unwrap_or_else(itself))
}

/// What a placement transaction means for who asks.
fn refused_until_then(failure: Failure) -> Failure {
    let message = format!("{}; every adapter for it refuses connections until then", failure.message);
    Failure { message, ..failure }.until_it_ends()
}

/// An adapter has no port to give out: the resolver that runs has said why.
fn without_port(publisher: &Publisher, service: &str, failure: Failure) -> Failure {
    let unbound = |row: &&Unserved| row.service == service && row.bind.parse::<SocketAddr>().is_err();
    let row = publisher.alive().and_then(|state| state.unserved.iter().find(unbound));
    match row.and_then(|row| publisher.why_unserved(service, &row.consumer, &row.bind)) {
        Some(why) => {
            let message = format!("{service} has no adapter that could be given out here: {why}");
            Failure::new(Class::InfraDown, Blame::ThisHost, message)
        }
        None => failure,
    }
}

/// The endpoint of a service of this host is an address of its own resolver: whoever answers there is not the service.
fn led_back(look: &Look, service: &str) -> Option<String> {
    let publisher = look.fleet.publisher().ok()?;
    let row = publisher.alive()?.unserved.iter().find(|row| row.service == service && row.led_back)?;
    publisher.why_unserved(service, &row.consumer, &row.bind)
}

fn record(look: &Look, found: &Connected, state: &str, detail: String) {
    let fact = fact(&found.service, &found.from);
    let row = Observation::seen(fact, &look.here(), state, detail, Timestamp::now());
    Observations::record(&look.fleet.host.stado_home, vec![row]);
}

/// An address that the resolver itself calls unserved is not given out untried either.
fn served(look: &Look, found: &Connected) -> Result<(), Failure> {
    let Connected { service, placed_on, reach, .. } = found;
    let Some(consumer) = &reach.consumer else { return Ok(()) };
    let Some(why) = Through::new(look, service, consumer, reach.addr).unserved() else { return Ok(()) };
    let sentence = format!("{service} is placed on {placed_on} and is not reached at {}: {why}", reach.url());
    Err(Failure::new(Class::InfraDown, Blame::Service, sentence))
}

fn print(look: &Look, args: &ConnectArgs, found: &Connected, answered: Option<Answered>) -> Result<(), Failure> {
    let Connected { service, placed_on, from, reach } = found;
    let observations = Observations::read(&look.fleet.host.stado_home);
    let observed = observations.text(&fact(service, from), Timestamp::now());
    let status = answered.and_then(|a| a.status());
    if args.json {
        return ui::json(&json!({
            "service": service, "placed_on": placed_on, "from": from,
            "consumer": args.consumer.as_ref().or(reach.consumer.as_ref()),
            "url": reach.url(), "verified": answered.is_some(), "status": status,
            "checked_from": answered.map(|_| look.here()), "observed": observed,
            "registry": provenance(&look.answer),
        }));
    }
    ui::line(reach.url())?;
    let checked = answered.map_or("not tried".to_owned(), |a| a.to_string());
    ui::note(format_args!("{service} is placed on {placed_on}, reached from {from} ({checked})"));
    Ok(())
}
