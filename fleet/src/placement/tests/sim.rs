//! Two hosts, a registry and a journal that live in memory, and can be cut off after any of their changes.
use crate::edit::Claim;
use crate::placement::{Action, Doing, Entry, PlacementError, Step, World};
use std::collections::HashMap;

/// One host's services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) running: bool,
    /// They would come up with it.
    pub(super) enabled: bool,
}

/// What is at the destination's state path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Previous,
    Aside,
    Copied,
}

/// How an action fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Before it did anything.
    Before,
    /// With everything done but its answer.
    After,
    /// A write whose end is not known; done or not.
    Uncertain { done: bool },
}

/// The world after any number of cuts.
#[derive(Debug, Clone)]
pub(super) struct Sim {
    pub(super) from: Host,
    pub(super) to: Host,
    pub(super) state: State,
    pub(super) staged: bool,
    pub(super) follows_destination: bool,
    pub(super) claimed: bool,
    pub(super) committed: bool,
    pub(super) journal: Option<Entry>,
    /// Changes until the cut.
    pub(super) fuse: Option<u32>,
    pub(super) faults: HashMap<Action, Fault>,
    pub(super) notes: Vec<String>,
}

/// The end of the process.
struct Cut;

impl Sim {
    pub(super) fn new() -> Self {
        Self {
            from: Host { running: true, enabled: true },
            to: Host { running: false, enabled: false },
            state: State::Previous,
            staged: false,
            follows_destination: false,
            claimed: false,
            committed: false,
            journal: None,
            fuse: None,
            faults: HashMap::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn claim() -> Claim {
        let text = str::to_owned;
        Claim {
            id: text("67e55044-10b1-426f-9247-bb680e5fe0c8"),
            profile: text("gateway"),
            from_host: text("from"),
            to_host: text("to"),
            started_at: text("2026-08-20T10:00:00Z"),
        }
    }

    /// Both hosts lose power, and come back with what is enabled.
    pub(super) fn power_cut(&mut self) {
        self.from.running = self.from.enabled;
        self.to.running = self.to.enabled;
        self.never_twice();
    }

    fn never_twice(&self) {
        assert!(!(self.from.running && self.to.running), "the services run twice: {self:#?}");
        assert!(!(self.from.enabled && self.to.enabled), "they would come up twice: {self:#?}");
    }

    /// Everything is where a finished move has it.
    pub(super) fn wholly_moved(&self) -> bool {
        let destination = Host { running: true, enabled: true };
        self.committed
            && self.to == destination
            && self.from == Host { running: false, enabled: false }
            && self.state == State::Copied
            && !self.staged
            && self.follows_destination
    }

    /// Everything is as it was.
    pub(super) fn wholly_back(&self) -> bool {
        !self.committed
            && self.from == Host { running: true, enabled: true }
            && self.to == Host { running: false, enabled: false }
            && self.state == State::Previous
            && !self.staged
            && !self.follows_destination
    }

    /// One change has been made; here the power may go.
    fn changed(&mut self) -> Result<(), Cut> {
        self.never_twice();
        match &mut self.fuse {
            Some(0) => Err(Cut),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn perform(&mut self, action: Action) -> Result<Result<(), PlacementError>, Cut> {
        self.changed()?;
        let fault = self.faults.remove(&action);
        let refused = || Ok(Err(PlacementError::failed(format!("{action:?} failed"))));
        match fault {
            Some(Fault::Before) => return refused(),
            Some(Fault::Uncertain { done }) => {
                if done && let Err(error) = self.effects(action)? {
                    return Ok(Err(error));
                }
                return Ok(Err(PlacementError::failed("who knows").uncertain()));
            }
            Some(Fault::After) | None => {}
        }
        let done = self.effects(action)?;
        if fault == Some(Fault::After) { refused() } else { Ok(done) }
    }

    fn effects(&mut self, action: Action) -> Result<Result<(), PlacementError>, Cut> {
        match action {
            Action::Forward(Step::Claim) => self.claimed = true,
            Action::Forward(Step::Preflight) => {}
            Action::Forward(Step::StopSource) => {
                self.from.enabled = false;
                self.changed()?;
                self.from.running = false;
            }
            Action::Forward(Step::CopyState) => self.staged = true,
            Action::Forward(Step::Routing) => self.follows_destination = true,
            Action::Forward(Step::StartDestination) => {
                assert!(!self.from.running && (self.staged || self.state == State::Copied), "{self:#?}");
                if self.staged {
                    self.state = State::Aside;
                    self.changed()?;
                    (self.state, self.staged) = (State::Copied, false);
                    self.changed()?;
                }
                self.to.running = true;
            }
            Action::Forward(Step::RetireSource) => {
                self.from = Host { running: false, enabled: false };
                self.changed()?;
                self.to.enabled = true;
            }
            Action::Forward(Step::Commit) => {
                assert!(self.to.running && self.claimed, "{self:#?}");
                (self.committed, self.claimed) = (true, false);
            }
            Action::Tidy => assert!(self.committed),
            Action::StopDestination => {
                self.to.enabled = false;
                self.changed()?;
                self.to.running = false;
            }
            Action::RouteBack => self.follows_destination = false,
            Action::EnableSource => self.from.enabled = true,
            Action::StartSource => {
                assert!(!self.to.running, "{self:#?}");
                self.from.running = true;
            }
            Action::RestoreState => {
                self.state = State::Previous;
                self.changed()?;
                self.staged = false;
            }
            Action::Release if self.committed => return Ok(Err(PlacementError::failed("it was moved after all"))),
            Action::Release => self.claimed = false,
        }
        self.changed()?;
        Ok(Ok(()))
    }
}

/// A process that is gone does nothing any more.
fn unless_cut<'a, T: 'a>(done: Result<Result<T, PlacementError>, Cut>) -> Doing<'a, T> {
    match done {
        Ok(done) => Box::pin(std::future::ready(done)),
        Err(Cut) => Box::pin(std::future::pending()),
    }
}

impl World for Sim {
    fn act(&mut self, action: Action) -> Doing<'_> {
        unless_cut(self.perform(action))
    }

    fn record<'a>(&'a mut self, entry: &'a Entry) -> Doing<'a> {
        unless_cut(self.changed().map(|()| {
            self.journal = Some(entry.clone());
            Ok(())
        }))
    }

    fn forget(&mut self) -> Doing<'_> {
        unless_cut(self.changed().map(|()| {
            self.journal = None;
            Ok(())
        }))
    }

    fn placed_on(&mut self) -> Doing<'_, String> {
        let host = if self.committed { "to" } else { "from" };
        Box::pin(std::future::ready(Ok(host.to_owned())))
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn note(&mut self, line: String) {
        self.notes.push(line);
    }
}
