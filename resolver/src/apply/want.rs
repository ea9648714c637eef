//! What each adapter of this target should be, read from its policy and the directory. Pure.
use super::plan::AdapterId;
use super::store_address::StoreAddress;
use crate::conn::Backend;
use stado_fleet::directory::{NoRoute, Route};
use stado_fleet::document::AdapterPolicy;
use stado_fleet::name::{ConsumerId, LogicalName};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Budget of an adapter's dial or channel open without `connect_seconds` (design, choices).
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(10);

/// The directory's answer for one (service, consumer).
pub type Resolve<'a> = dyn Fn(&LogicalName, &ConsumerId) -> Result<Arc<Route>, NoRoute> + 'a;

/// What one adapter should be.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which.
    pub id: AdapterId,
    /// Served, or not and why.
    pub wish: Wish,
    /// Its service is declared to be at an address where this resolver itself listens.
    pub led_back: bool,
}
/// Served, or not and why.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Bound, with this behind it.
    Serve {
        /// What stands behind it; `None` refuses each connection with its reason.
        backend: Backend,
        /// Budget of a dial.
        budget: Duration,
    },
    /// Not bound, with the reason that people see.
    Unserved(String),
}

/// What [`want`] reads.
pub struct Inputs<'a> {
    /// Adapters of this target, in document order.
    pub adapters: &'a [AdapterPolicy],
    /// The directory's answer for one (service, consumer).
    pub resolve: &'a Resolve<'a>,
    /// Bind of an adapter without a declared one, when the allocator remembers it.
    pub remembered: &'a dyn Fn(&AdapterId) -> Option<SocketAddr>,
    /// Where the resolution API is or will be.
    pub api_bind: Option<SocketAddr>,
    /// Where this host's registry is configured; given only on the authority host (§4.2).
    pub store: Option<&'a StoreAddress>,
    /// Why a service may not be at an address of this host: this daemon listens there for something else.
    pub loops: &'a dyn Fn(SocketAddr, &str) -> Option<String>,
}

/// One wish per declared adapter, in document order.
pub fn want(inputs: &Inputs<'_>) -> Vec<Wanted> {
    let mut seen = HashSet::new();
    let mut taken = HashSet::new();
    inputs
        .adapters
        .iter()
        .map(|policy| {
            let id = AdapterId::of(policy);
            let (wish, led_back) = if !seen.insert(id.clone()) || policy.bind.is_some_and(|bind| !taken.insert(bind)) {
                (Wish::Unserved(twice(&id)), false)
            } else {
                wish(inputs, policy, &id)
            };
            Wanted { id, wish, led_back }
        })
        .collect()
}

fn twice(id: &AdapterId) -> String {
    match id.declared {
        Some(bind) => format!("{bind} is declared by more than one adapter of this target; the first one has it"),
        None => format!(
            "the adapter {id} without a bind is declared more than once on this target; the first one is served"
        ),
    }
}

/// And whether its service leads back here.
fn wish(inputs: &Inputs<'_>, policy: &AdapterPolicy, id: &AdapterId) -> (Wish, bool) {
    let bind = policy.bind.or_else(|| (inputs.remembered)(id));
    if let (Some(bind), Some(store)) = (bind, inputs.store)
        && store.is(bind)
    {
        return (Wish::Unserved(store.contradiction(id.service.as_str(), bind)), false);
    }
    if bind.is_some() && bind == inputs.api_bind {
        let reason = format!(
            "{} is this resolver's own resolution API (service_resolver.api_bind); give the adapter another port",
            bind.map(|b| b.to_string()).unwrap_or_default()
        );
        return (Wish::Unserved(reason), false);
    }
    let (backend, led_back) = match (inputs.resolve)(&policy.service, &policy.consumer) {
        Err(reason) => (Backend::None(reason.to_string().into()), false),
        Ok(route) => match own_address(inputs, policy, bind, &route) {
            Some(reason) => return (Wish::Unserved(reason), true),
            None => match other_listener(inputs, &route) {
                Some(reason) => (Backend::None(reason.into()), true),
                None => (Backend::Fleet(route), false),
            },
        },
    };
    let budget = policy.connect_seconds.filter(|s| *s > 0).map_or(DEFAULT_BUDGET, Duration::from_secs);
    (Wish::Serve { backend, budget }, led_back)
}

/// A local route that leads back into this resolver (§4.5, proxy rule 4). Such an adapter is not even bound: the address
/// belongs to the service that should listen there.
fn own_address(inputs: &Inputs<'_>, policy: &AdapterPolicy, bind: Option<SocketAddr>, route: &Route) -> Option<String> {
    if !route.local {
        return None;
    }
    let must = "the service directory must carry the address the service listens on, not the stable port published for its clients";
    let service = &policy.service;
    for address in route.endpoint.addr.candidates() {
        if bind == Some(address) {
            return Some(format!("service {service} resolves to {address}, which is this adapter's own bind: {must}"));
        }
        if inputs.api_bind == Some(address) {
            return Some(format!("service {service} resolves to {address}, which is this resolver's own API: {must}"));
        }
        let other =
            inputs.adapters.iter().find(|a| a.bind.or_else(|| (inputs.remembered)(&AdapterId::of(a))) == Some(address));
        if let Some(other) = other {
            return Some(format!(
                "service {service} resolves to {address}, which is this resolver's own adapter for {}: {must}",
                other.service
            ));
        }
    }
    None
}

/// A local route to another listener of this daemon, its router perhaps, which comes and goes by itself: bound, and refused for
/// as long as it is there.
fn other_listener(inputs: &Inputs<'_>, route: &Route) -> Option<String> {
    let addresses = route.endpoint.addr.candidates();
    let loops = |address: &SocketAddr| (inputs.loops)(*address, route.service.as_str());
    addresses.iter().filter(|_| route.local).find_map(loops)
}

/// The one warning about keys that are accepted and ignored (design, choices: connect and idle budgets).
pub fn ignored_keys(adapters: &[AdapterPolicy]) -> Option<String> {
    let with: Vec<String> =
        adapters.iter().filter(|a| a.idle_seconds.is_some()).map(|a| AdapterId::of(a).to_string()).collect();
    (!with.is_empty()).then(|| {
        format!(
            "idle_seconds of {} is ignored: a connection ends when either end closes it, however long it is silent",
            with.join(", ")
        )
    })
}
