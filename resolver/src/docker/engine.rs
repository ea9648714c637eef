//! The container engine as the adapter sees it: four questions. Behind a trait, so that tests can answer them.
use super::container::Container;
use super::reach::Reach;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that takes its time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, EngineError>> + Send + 'a>>;

/// A connected engine. Every answer but the event stream has a deadline.
pub trait Engine: Send + Sync + fmt::Debug {
    /// What it is.
    fn about(&self) -> About;
    /// How what it publishes is reached from here.
    fn reach(&self) -> Reach {
        Reach::Here
    }
    /// All running and paused containers with our label, in any order.
    fn list(&self) -> Answer<'_, Vec<Listed>>;
    /// One container; `None` when there is none of this id.
    fn inspect<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Container>>;
    /// What happens from `since` on. Ends when the connection does.
    fn events(&self, since: Timestamp) -> BoxStream<'static, Result<Event, EngineError>>;
}

/// Finds the engine and connects to it, anew at every call: its socket may be another one by now.
pub trait Connect: Send + Sync + fmt::Debug + 'static {
    /// Connects.
    fn connect(&self) -> Answer<'_, Arc<dyn Engine>>;
    /// Where it looks, for people.
    fn place(&self) -> String;
}

/// What an engine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Where it is.
    pub endpoint: String,
    /// Its version, such as `20.10.24`.
    pub version: String,
    /// The API version that is spoken, such as `1.41`.
    pub api: String,
}

/// A container in a list. Two equal ones need no inspection in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name, without the slash.
    pub name: String,
    /// Names of services that its labels ask for, as they are written; empty when the list tells no labels.
    pub asks_for: BTreeSet<String>,
    /// Everything of the list that our verdict can depend on, as one text.
    pub digest: String,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The container it happened to.
    pub container: String,
    /// What.
    pub what: What,
    /// When, on the engine's clock.
    pub at: Option<Timestamp>,
    /// Attributes, with the container's labels; empty when the engine sends none.
    pub attributes: BTreeMap<String, String>,
}

/// Kinds of events that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It may be other than before.
    Changed,
    /// It ended: `died`, `stopped`, `removed`.
    Ended(&'static str),
}

/// The engine did not answer as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct EngineError {
    /// Which engine, what happened, what to do.
    pub sentence: String,
    /// Class.
    pub class: Class,
}

impl EngineError {
    /// An engine that is not there, or went away.
    pub fn away(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class: Class::InfraDown }
    }
}

impl Faulty for EngineError {
    fn blame(&self) -> Blame {
        match self.class {
            Class::Auth => Blame::Credentials,
            Class::Config => Blame::ThisHost,
            _ => Blame::Service,
        }
    }
    fn class(&self) -> Class {
        self.class
    }
}
