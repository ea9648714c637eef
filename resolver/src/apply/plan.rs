//! Which steps lead from what runs to what [`super::want`] asks for. Pure.
use super::want::{Wanted, Wish};
use crate::conn::Backend;
use stado_fleet::document::AdapterPolicy;
use stado_fleet::name::{ConsumerId, LogicalName};
use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Which adapter: what is declared, so that a changed declaration is another adapter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdapterId {
    /// Service.
    pub service: LogicalName,
    /// Consumer.
    pub consumer: ConsumerId,
    /// Declared bind; `None` when the allocator chooses and remembers one.
    pub declared: Option<SocketAddr>,
}
impl AdapterId {
    /// The identity of a declared adapter.
    pub fn of(policy: &AdapterPolicy) -> Self {
        Self { service: policy.service.clone(), consumer: policy.consumer.clone(), declared: policy.bind }
    }
    /// The key of remembered adapter ports: `service/consumer`.
    pub fn allocation_key(&self) -> String {
        format!("{}/{}", self.service, self.consumer)
    }
}
impl fmt::Display for AdapterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.service, self.consumer)
    }
}

/// An adapter that runs now.
#[derive(Debug, Clone)]
pub struct Running {
    /// Which.
    pub id: AdapterId,
    /// What stands behind it.
    pub backend: Backend,
    /// Budget of a dial.
    pub budget: Duration,
}

/// One step. Steps are carried out in the order of the plan.
#[derive(Debug, Clone)]
pub enum Action {
    /// Stops accepting; open streams end by themselves.
    Close(AdapterId),
    /// Moves new connections only.
    SetBackend(AdapterId, Backend),
    /// Binds and starts accepting.
    Bind(AdapterId, Backend, Duration),
}
/// All steps of one change, and what stays unserved by declaration.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Steps.
    pub actions: Vec<Action>,
    /// Adapters that are not to be bound, with reasons.
    pub unserved: Vec<(AdapterId, String)>,
}

/// The steps from `running` to `wanted`: closes first (their ports may be wanted again), then binds. An adapter whose
/// wish already holds gets no step; one whose budget changed is bound anew.
pub fn plan(running: &[Running], wanted: &[Wanted]) -> Plan {
    let mut plan = Plan::default();
    let stays = |r: &&Running| {
        wanted.iter().any(|w| w.id == r.id && matches!(w.wish, Wish::Serve { budget, .. } if budget == r.budget))
    };
    let (staying, leaving): (Vec<&Running>, Vec<&Running>) = running.iter().partition(stays);
    plan.actions.extend(leaving.iter().map(|r| Action::Close(r.id.clone())));
    let mut binds = Vec::new();
    let mut planned = HashSet::new();
    for Wanted { id, wish, .. } in wanted {
        let (backend, budget) = match wish {
            Wish::Unserved(reason) => {
                plan.unserved.push((id.clone(), reason.clone()));
                continue;
            }
            Wish::Serve { backend, budget } => (backend, *budget),
        };
        if !planned.insert(id) {
            continue;
        }
        match staying.iter().find(|r| r.id == *id) {
            None => binds.push(Action::Bind(id.clone(), backend.clone(), budget)),
            Some(now) if same_backend(&now.backend, backend) => {}
            Some(_) => plan.actions.push(Action::SetBackend(id.clone(), backend.clone())),
        }
    }
    // A declared [::1]:P is bound before 127.0.0.1:P, which would take it as its second half.
    // Adapters without a bind come last, so that the allocator sees what is declared as taken.
    binds.sort_by_key(|action| match action {
        Action::Bind(id, ..) => match id.declared {
            Some(bind) if bind.is_ipv6() => 0,
            Some(_) => 1,
            None => 2,
        },
        _ => 0,
    });
    plan.actions.extend(binds);
    plan
}

/// Whether two backends lead to the same place in the same way.
pub fn same_backend(a: &Backend, b: &Backend) -> bool {
    match (a, b) {
        (Backend::Local(a), Backend::Local(b)) => a == b,
        (Backend::Fleet(a), Backend::Fleet(b)) => a == b,
        (Backend::None(a), Backend::None(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
