//! The resolution API of this host: bound once, moved when its declaration moves (the new one is bound before the old one
//! closes).
use super::actuate::refused;
use super::held::HeldReader;
use crate::api::resolution::{MetricsText, Resolution};
use crate::conn::ledger::Ledger;
use crate::conn::{self, Bound, Families, Lent, OwnListeners};
use stado_fleet::ledger::{Unserved, stamp};
use std::net::SocketAddr;
use std::time::Duration;

/// What the API is called among unserved things and own addresses.
const NAME: &str = "resolution-api";
/// Answers under way when the address moves.
const HAND_OVER: Duration = Duration::from_secs(2);

/// A resolution API that could not be bound. `Display` is the sentence of fleet contract §4.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ApiBindError {
    /// Address.
    pub bind: SocketAddr,
    /// Sentence.
    pub sentence: String,
}

/// The API, or why there is none.
pub struct ApiSlot {
    held: HeldReader,
    metrics: Option<MetricsText>,
    own: OwnListeners,
    ledger: Ledger,
    current: Option<Resolution>,
    /// Listeners that another process handed over, until they serve.
    inherited: Option<Bound>,
    missing_half: Option<String>,
    unserved: Option<(ApiBindError, jiff::Timestamp)>,
}

impl ApiSlot {
    /// Not bound yet. `own`: where the daemon's listeners are entered, so that no backend may name them. `ledger`: told of
    /// connections that are no traffic.
    pub fn new(held: HeldReader, metrics: Option<MetricsText>, own: OwnListeners, ledger: Ledger) -> Self {
        Self { held, metrics, own, ledger, current: None, inherited: None, missing_half: None, unserved: None }
    }

    /// Uses these instead of binding, if the address is the one that is asked for next.
    pub fn inherit(&mut self, listeners: Option<Bound>) {
        self.inherited = listeners;
    }

    /// The listeners and what is missing, to hand them over to another process.
    pub fn lend(&self) -> Option<(SocketAddr, Option<String>, Vec<Lent>)> {
        let current = self.current.as_ref()?;
        Some((current.bind(), self.missing_half.clone(), current.lend()))
    }

    /// Makes the API listen at `bind`. When it cannot, the one at the former address goes on, and the error says why;
    /// whether that stops the daemon is the caller's to decide.
    pub async fn ensure(&mut self, bind: SocketAddr, now: jiff::Timestamp) -> Result<(), ApiBindError> {
        if self.bind() == Some(bind) {
            self.unserved = None;
            return Ok(());
        }
        let inherited = self.inherited.take().filter(|bound| bound.addr == bind);
        match inherited.map_or_else(|| conn::bind(bind, Families::AtLeastOne), Ok) {
            Ok(bound) => {
                self.missing_half.clone_from(&bound.missing_half);
                let listeners = bound.into_listeners();
                let next =
                    Resolution::start(listeners, bind, self.held.clone(), self.metrics.clone(), self.ledger.clone());
                self.own.enter(bind, "the resolution API".into());
                self.unserved = None;
                if let Some(old) = self.current.replace(next) {
                    self.own.leave(old.bind());
                    tokio::spawn(old.close(HAND_OVER));
                }
                Ok(())
            }
            Err(error) => {
                let error = ApiBindError { bind, sentence: refused(&error) };
                let since = self.unserved.as_ref().filter(|(e, _)| *e == error).map_or(now, |(_, since)| *since);
                self.unserved = Some((error.clone(), since));
                Err(error)
            }
        }
    }

    /// Where it listens.
    pub fn bind(&self) -> Option<SocketAddr> {
        self.current.as_ref().map(Resolution::bind)
    }

    /// Its entry among unserved things.
    pub fn unserved(&self) -> Option<Unserved> {
        self.unserved.as_ref().map(|(error, since)| Unserved {
            service: NAME.to_owned(),
            bind: error.bind.to_string(),
            reason: error.sentence.clone(),
            since: Some(stamp(*since)),
            ..Unserved::default()
        })
    }

    /// The missing loopback half, as a warning.
    pub fn warning(&self) -> Option<String> {
        let (bind, half) = (self.bind()?, self.missing_half.as_ref()?);
        Some(format!("the resolution API at {bind} serves one loopback family only: {half}"))
    }

    /// Stops accepting and lets answers under way end.
    pub async fn close(mut self, grace: Duration) {
        if let Some(api) = self.current.take() {
            self.own.leave(api.bind());
            api.close(grace).await;
        }
    }
}
