//! The steps of a transaction, carried out: what each says to which host, in which words it fails.
use super::hosts::Hosts;
use crate::cmd::fleet::Fleet;
use crate::exit::Failure;
use crate::ui;
use stado_fleet::czekam;
use stado_fleet::disk::{Lock, LockAttempt};
use stado_fleet::edit::Claim;
use stado_fleet::name::StoreVersion;
use stado_fleet::placement::state::{self, Place};
use stado_fleet::placement::{
    Action, Doing, Entry, Journal, PlacementError, Profile, Routing, Step, Unit, World, shell, units,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// For scripts that only look.
const LOOK: Duration = Duration::from_secs(120);
/// For scripts that start or stop a profile's services.
const ACT: Duration = Duration::from_secs(900);
/// For a checksum of state of any size.
const READ: Duration = Duration::from_secs(6 * 3600);
/// A step that takes longer is announced.
const BLINK: Duration = Duration::from_secs(2);

/// One transaction at work.
pub(super) struct Mover<'f> {
    pub(super) fleet: &'f Fleet,
    pub(super) hosts: Hosts<'f>,
    pub(super) profile: Profile,
    pub(super) claim: Claim,
    /// The generation that the claim made.
    pub(super) version: Option<StoreVersion>,
    /// The generation of the commit.
    pub(super) committed: Option<StoreVersion>,
    pub(super) journal: Journal,
    pub(super) interrupted: Arc<AtomicBool>,
    /// The furthest step that was begun.
    pub(super) furthest: Option<Step>,
}

/// The right to move on this host, held until dropped.
pub(super) fn alone(stado_home: &Path) -> Result<Lock, Failure> {
    let journal = Journal::below(stado_home);
    match Lock::try_exclusive(&journal.lock(), true)? {
        LockAttempt::Held(lock) => Ok(lock),
        LockAttempt::Busy { pid } => {
            let who = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
            let ids: Vec<String> = journal.entries().into_iter().map(|entry| entry.claim.id).collect();
            let which = if ids.is_empty() { "not claimed yet".to_owned() } else { ids.join(", ") };
            Err(Failure::refused(format!(
                "another placement transaction is active: {which}; {who} is at work on it on this host, see `stado placement \
                 status`"
            ))
            .until_it_ends())
        }
    }
}

/// A flag that a signal to stop raises: the step at work ends first.
pub(super) fn interruption() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut told = signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")))?;
        let flag = Arc::clone(&flag);
        tokio::spawn(async move {
            while told.recv().await.is_some() {
                flag.store(true, Ordering::Relaxed);
            }
        });
    }
    Ok(flag)
}

impl World for Mover<'_> {
    fn act(&mut self, action: Action) -> Doing<'_> {
        let (what, place) = self.told(action);
        Box::pin(czekam::when_long(BLINK, what, place, "placement", self.perform(action)))
    }

    fn record<'a>(&'a mut self, entry: &'a Entry) -> Doing<'a> {
        self.furthest = Some(entry.step);
        let written = self.journal.write(entry).map_err(|e| PlacementError::of(&e));
        Box::pin(std::future::ready(written))
    }

    fn forget(&mut self) -> Doing<'_> {
        let removed = self.journal.remove(&self.claim.id).map_err(|e| PlacementError::of(&e));
        Box::pin(std::future::ready(removed))
    }

    fn placed_on(&mut self) -> Doing<'_, String> {
        Box::pin(self.placed())
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn note(&mut self, line: String) {
        ui::note(line);
    }
}

impl Mover<'_> {
    fn told(&self, action: Action) -> (&'static str, &'static str) {
        let what = match action {
            Action::Forward(step) => step.word(),
            Action::Tidy => "tidy",
            Action::StopDestination => "stop-destination",
            Action::RouteBack => "route-back",
            Action::EnableSource | Action::StartSource => "start-source",
            Action::RestoreState => "restore-state",
            Action::Release => "release",
        };
        (what, "placement transaction")
    }

    async fn perform(&mut self, action: Action) -> Result<(), PlacementError> {
        let (from, to) = (self.claim.from_host.clone(), self.claim.to_host.clone());
        match action {
            Action::Forward(Step::Claim) => self.claim().await,
            Action::Forward(Step::Preflight) => self.preflight(&from, &to).await,
            Action::Forward(Step::StopSource) => self.stop(&from, "stopping").await,
            Action::Forward(Step::CopyState) => self.copy(&from, &to).await,
            Action::Forward(Step::Routing) => self.route(&to).await,
            Action::Forward(Step::StartDestination) => self.start_destination(&to).await,
            Action::Forward(Step::RetireSource) => {
                self.stop(&from, "retiring").await?;
                self.enable(&to).await
            }
            Action::Forward(Step::Commit) => self.commit().await,
            Action::Tidy => self.on_state(&to, "tidying", state::tidy).await,
            Action::StopDestination => {
                self.stop(&to, "stopping").await?;
                self.remove_files(&to).await
            }
            Action::RouteBack => self.route(&from).await,
            Action::EnableSource => self.enable(&from).await,
            Action::StartSource => self.start(&from).await,
            Action::RestoreState => self.on_state(&to, "restoring state", state::restore).await,
            Action::Release => self.release().await,
        }
    }

    fn places(&self, host: &str) -> Result<Vec<Place>, PlacementError> {
        let work_root = self.profile.host(host)?.work_root.as_deref();
        let place = |path| {
            Place::of(path, work_root).ok_or_else(|| {
                PlacementError::config(format!(
                    "state {} is below work_root, and targets[{host}] declares none that is an absolute path",
                    path.path
                ))
            })
        };
        self.profile.state.iter().map(place).collect()
    }

    fn to_start(&self, host: &str) -> Result<Vec<Unit>, PlacementError> {
        self.profile.units(host, &self.profile.start_order)
    }

    fn to_stop(&self, host: &str) -> Result<Vec<Unit>, PlacementError> {
        self.profile.units(host, &self.profile.stop_order)
    }

    async fn change(&self, host: &str, script: &str, doing: &str) -> Result<String, PlacementError> {
        self.hosts.run(host, &shell::alone(script), ACT, doing).await
    }

    async fn preflight(&self, from: &str, to: &str) -> Result<(), PlacementError> {
        let (here, there) = (self.places(from)?, self.places(to)?);
        let arriving = self.to_start(to)?;
        self.to_stop(from)?;
        self.routing_units()?;
        let present = self.hosts.run(from, &state::look(&here), LOOK, "preflight").await?;
        let tools = self.hosts.run(to, &state::look(&[]), LOOK, "preflight").await?;
        drop(tools);
        let room = self.change(to, &state::room(&there), "preflight").await?;
        for ((place, needed), free) in there.iter().zip(present.lines()).zip(room.lines()) {
            let needed: u64 = needed.strip_prefix("present ").and_then(|n| n.parse().ok()).unwrap_or(0);
            let free: u64 = free.trim().parse().unwrap_or(u64::MAX);
            if needed > free {
                let sentence =
                    format!("{to} has no room for {}: it needs {needed} KiB, and {free} KiB are free", place.shown);
                return Err(PlacementError::refused(sentence));
            }
        }
        let written = |unit: &Unit| self.profile.runs.contains_key(&unit.service);
        self.hosts.run(to, &units::ready(&arriving, written), LOOK, "preflight").await?;
        for probe in &self.profile.host(to)?.probes {
            if self.hosts.listens(to, probe).await {
                return Err(PlacementError::refused(format!(
                    "preflight on {to}: something listens at {} already, and {} could not be told from it; stop that first",
                    probe.url, probe.service
                )));
            }
        }
        for routing in &self.profile.routing {
            self.hosts.run(&routing.host, ":", LOOK, "preflight").await?;
        }
        Ok(())
    }

    /// Stops the services on a host, and keeps them from starting with it.
    async fn stop(&self, host: &str, doing: &str) -> Result<(), PlacementError> {
        let leaving = self.to_stop(host)?;
        self.change(host, &(units::disable(&leaving) + &units::stop(&leaving)), doing).await.map(drop)
    }

    async fn enable(&self, host: &str) -> Result<(), PlacementError> {
        self.change(host, &units::enable(&self.to_start(host)?), "enabling").await.map(drop)
    }

    /// Starts them, and waits until each answers.
    async fn start(&self, host: &str) -> Result<(), PlacementError> {
        self.change(host, &units::start(&self.to_start(host)?), "starting").await?;
        for probe in &self.profile.host(host)?.probes {
            self.hosts.answers(host, probe).await?;
        }
        Ok(())
    }

    async fn start_destination(&self, to: &str) -> Result<(), PlacementError> {
        self.on_state(to, "putting state in place", state::install).await?;
        for unit in self.to_start(to)? {
            if let Some(run) = self.profile.runs.get(&unit.service) {
                self.change(to, &units::write_file(&unit, run, &self.claim.id), "starting").await?;
            }
        }
        self.start(to).await
    }

    async fn remove_files(&self, host: &str) -> Result<(), PlacementError> {
        for unit in self.to_start(host)? {
            if let Some(run) = self.profile.runs.get(&unit.service) {
                self.change(host, &units::remove_file(&unit, run, &self.claim.id), "stopping").await?;
            }
        }
        Ok(())
    }

    async fn on_state(
        &self,
        host: &str,
        doing: &str,
        script: impl Fn(&[Place], &str) -> String,
    ) -> Result<(), PlacementError> {
        self.change(host, &script(&self.places(host)?, &self.claim.id), doing).await.map(drop)
    }

    /// Copies each path beside its place, and compares what arrived with what is at the source.
    async fn copy(&self, from: &str, to: &str) -> Result<(), PlacementError> {
        let doing = "copying state";
        let id = &self.claim.id;
        for (here, there) in self.places(from)?.iter().zip(self.places(to)?) {
            let found = self.hosts.run(from, &state::look(std::slice::from_ref(here)), LOOK, doing).await?;
            if found.trim() == "absent" {
                self.change(to, &state::absent(&there, id), doing).await?;
                continue;
            }
            let sent = self.hosts.run(from, &state::checksum(here), READ, doing).await?;
            let unpack = shell::alone(&state::unpack(&there, id));
            let said = self.hosts.pipe((from, &state::pack(here)), (to, &unpack), doing).await?;
            let sent = checksum(&sent).unwrap_or_default();
            match checksum(&said) {
                Some(arrived) if arrived == sent => {}
                Some(arrived) => {
                    return Err(PlacementError::failed(format!(
                        "{doing}: {} on {to} has checksum {arrived}, and {} on {from} has {sent}: the copy is not whole",
                        there.shown, here.shown
                    )));
                }
                None => {
                    let why = shell::last_words(said.as_bytes());
                    return Err(PlacementError::failed(format!(
                        "{doing}: {} did not arrive on {to}: {why}",
                        there.shown
                    )));
                }
            }
        }
        Ok(())
    }

    fn routing_units(&self) -> Result<Vec<(&Routing, Unit)>, PlacementError> {
        let unit = |routing: &Routing| {
            let name = ["name", "unit"].iter().find_map(|key| routing.unit.get(key)?.as_str()).unwrap_or("routing");
            Unit::read(name, &routing.host, &routing.unit)
        };
        self.profile.routing.iter().map(|routing| Ok((routing, unit(routing)?))).collect()
    }

    /// Units of other hosts follow a destination: those of others first stop, then its own start.
    async fn route(&self, destination: &str) -> Result<(), PlacementError> {
        let all = self.routing_units()?;
        let (follow, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(routing, _)| routing.active_when_destination == destination);
        for (routing, unit) in rest {
            let unit = [unit];
            self.change(&routing.host, &(units::disable(&unit) + &units::stop(&unit)), "routing").await?;
        }
        for (routing, unit) in follow {
            let unit = [unit];
            self.change(&routing.host, &(units::enable(&unit) + &units::start(&unit)), "routing").await?;
        }
        Ok(())
    }
}

fn checksum(said: &str) -> Option<&str> {
    said.lines().rev().find_map(|line| line.strip_prefix("checksum ")).map(str::trim).filter(|sum| sum.len() == 64)
}
