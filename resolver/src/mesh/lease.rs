//! Leases: pure. A lease belongs to one registration, keeps its own length, and cannot be revived once it has run out
//! (`mesh.md`, leases; mesh contract §1.5).
use super::clock::Now;
use super::error::Refusal;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::{RegisterRequest, RegisterResponse};
use std::collections::HashMap;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The right to renew or remove one registration.
#[derive(Clone)]
pub(super) struct Lease {
    /// Registration id.
    pub id: String,
    /// The name that was claimed.
    pub name: ServiceName,
    /// The secret; never logged.
    pub token: String,
    /// Length, kept at each renewal.
    pub ttl: Duration,
    /// Tick at which it has run out.
    pub expires: Duration,
    /// `Idempotency-Key` it was created under.
    pub key: Option<String>,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer that a repeated `Idempotency-Key` gets while the lease lives.
pub(super) struct Answer {
    pub id: String,
    pub request: RegisterRequest,
    pub response: RegisterResponse,
}

/// All live leases.
#[derive(Default)]
pub(super) struct Leases {
    by_id: HashMap<String, Lease>,
    answers: HashMap<String, Answer>,
}

impl std::fmt::Debug for Leases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leases").field("live", &self.by_id.len()).finish_non_exhaustive()
    }
}

impl Leases {
    /// Enters a lease, and the answer to repeat if it was created under a key.
    pub(super) fn grant(&mut self, lease: Lease, request: &RegisterRequest, response: &RegisterResponse) {
        if let Some(key) = &lease.key {
            let answer = Answer { id: lease.id.clone(), request: request.clone(), response: response.clone() };
            self.answers.insert(key.clone(), answer);
        }
        self.by_id.insert(lease.id.clone(), lease);
    }

    /// Renews for the lease's own length. `404` for an unknown or run-out lease, `401` for a wrong token.
    pub(super) fn renew(&mut self, id: &str, token: Option<&str>, now: Now) -> Result<Duration, Refusal> {
        self.authorize(id, token, now)?;
        let lease = self.by_id.get_mut(id).ok_or_else(|| Refusal::NoRegistration(id.to_owned()))?;
        lease.expires = now.tick.saturating_add(lease.ttl);
        Ok(lease.ttl)
    }

    /// Ends a lease on its holder's word.
    pub(super) fn surrender(&mut self, id: &str, token: Option<&str>, now: Now) -> Result<Lease, Refusal> {
        self.authorize(id, token, now)?;
        self.end(id).ok_or_else(|| Refusal::NoRegistration(id.to_owned()))
    }

    /// Ends a lease on the daemon's word.
    pub(super) fn end(&mut self, id: &str) -> Option<Lease> {
        let lease = self.by_id.remove(id)?;
        if let Some(key) = &lease.key
            && self.answers.get(key).is_some_and(|answer| answer.id == id)
        {
            self.answers.remove(key);
        }
        Some(lease)
    }

    /// Removes and returns every lease that has run out at `now`.
    pub(super) fn expire(&mut self, now: Now) -> Vec<Lease> {
        let over: Vec<String> =
            self.by_id.values().filter(|lease| lease.is_over(now)).map(|lease| lease.id.clone()).collect();
        over.iter().filter_map(|id| self.end(id)).collect()
    }

    /// Whether the lease `id` has run out at `now` but was not removed yet.
    pub(super) fn is_over(&self, id: &str, now: Now) -> bool {
        self.by_id.get(id).is_some_and(|lease| lease.is_over(now))
    }

    /// The answer to repeat for `key`, if its lease lives; a refusal when the key was used for another request.
    pub(super) fn repeat(
        &self,
        key: &str,
        request: &RegisterRequest,
        now: Now,
    ) -> Result<Option<RegisterResponse>, Refusal> {
        let live = |answer: &&Answer| self.by_id.get(&answer.id).is_some_and(|lease| !lease.is_over(now));
        match self.answers.get(key).filter(live) {
            None => Ok(None),
            Some(answer) if answer.request == *request => Ok(Some(answer.response.clone())),
            Some(_) => Err(Refusal::KeyReused(super::names::quoted(key))),
        }
    }

    /// The leases of `name` follow its new name.
    pub(super) fn rename(&mut self, from: &ServiceName, to: &ServiceName) {
        for lease in self.by_id.values_mut().filter(|lease| lease.name == *from) {
            lease.name = to.clone();
        }
    }

    /// All leases, each with the answer that its key repeats.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Lease, Option<&Answer>)> {
        self.by_id.values().map(|lease| {
            let answer = lease.key.as_ref().and_then(|key| self.answers.get(key));
            (lease, answer.filter(|answer| answer.id == lease.id))
        })
    }

    /// Enters a lease that another process granted.
    pub(super) fn take_up(&mut self, lease: Lease, answer: Option<Answer>) {
        if let (Some(key), Some(answer)) = (&lease.key, answer) {
            self.answers.insert(key.clone(), answer);
        }
        self.by_id.insert(lease.id.clone(), lease);
    }

    /// How many leases live.
    pub(super) fn count(&self) -> usize {
        self.by_id.len()
    }

    fn authorize(&self, id: &str, token: Option<&str>, now: Now) -> Result<(), Refusal> {
        let lease = self.by_id.get(id).filter(|lease| !lease.is_over(now));
        let lease = lease.ok_or_else(|| Refusal::NoRegistration(id.to_owned()))?;
        let given = token.unwrap_or_default();
        if bool::from(given.as_bytes().ct_eq(lease.token.as_bytes())) { Ok(()) } else { Err(Refusal::Token) }
    }
}

impl Lease {
    fn is_over(&self, now: Now) -> bool {
        now.tick >= self.expires
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
