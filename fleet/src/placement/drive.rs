//! The order of a transaction: forward, back, and on from wherever it was cut off. What is done is a [`World`]'s.
//!
//! Two rules hold at every moment. The services never run on both hosts: the destination starts only after the source is
//! known to have stopped, the source starts again only after the destination has, and at no moment would both come up with
//! their hosts after a power cut. And the source's state is never touched, so going back is possible until the registry says
//! otherwise.
use super::{Entry, PlacementError, Step};
use std::future::Future;
use std::pin::Pin;

/// What a world is asked to do. Every one may be asked for again, after any cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A step of the way forward.
    Forward(Step),
    /// Removes what was kept for going back, once there is no way back.
    Tidy,
    /// Stops the destination's services and keeps them from starting again.
    StopDestination,
    /// Units of other hosts follow the source again.
    RouteBack,
    /// Lets the source's services come up with their host again.
    EnableSource,
    /// Starts them, and waits until they answer.
    StartSource,
    /// Puts back what was at the destination before.
    RestoreState,
    /// Takes the claim out of the registry; it is an error when the registry says that the move was made.
    Release,
}

/// What an action gives. One thread leads a transaction.
pub type Doing<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T, PlacementError>> + 'a>>;

/// Hosts, registry and journal.
pub trait World {
    /// Does it, wholly or with an error.
    fn act(&mut self, action: Action) -> Doing<'_>;
    /// Puts an entry into the journal before what it announces is done.
    fn record<'a>(&'a mut self, entry: &'a Entry) -> Doing<'a>;
    /// Takes the entry out of the journal.
    fn forget(&mut self) -> Doing<'_>;
    /// Where the registry has the profile now.
    fn placed_on(&mut self) -> Doing<'_, String>;
    /// Somebody asked for a stop.
    fn interrupted(&self) -> bool;
    /// Something that is worth a line and stops nothing.
    fn note(&mut self, line: String);
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// On the destination.
    Moved,
    /// On the source, as before.
    Back,
}

/// What a person wishes of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Back, also where forward is near.
    pub undo: bool,
    /// On the way back, the claim is released also when the source's services do not come up.
    pub leave_down: bool,
}

/// Leads a new transaction to its end.
///
/// # Errors
/// Why it was not made. The sentence says whether everything is as before, or what stands and how to go on.
pub async fn forward(world: &mut dyn World, mut entry: Entry) -> Result<(), PlacementError> {
    let steps = advance(world, &mut entry, Step::ALL.as_slice()).await;
    match steps {
        Ok(()) => Ok(()),
        Err(error) if error.uncertain => Err(stands(&entry, error)),
        // Nothing was claimed, so nothing was done.
        Err(error) if entry.step == Step::Claim => {
            let _ = world.forget().await;
            Err(error)
        }
        Err(error) => Err(failed(world, entry, error).await),
    }
}

/// Goes on where a transaction was cut off. `claimed`: the registry still names it.
///
/// # Errors
/// It could not be brought to an end; the sentence says what stands.
pub async fn recover(
    world: &mut dyn World,
    mut entry: Entry,
    claimed: bool,
    wish: Wish,
) -> Result<Ended, PlacementError> {
    if !claimed {
        return unclaimed(world, entry, wish).await;
    }
    if entry.back || wish.undo || entry.step < Step::RetireSource {
        let stopped = entry.step >= Step::StopSource;
        if let Err(error) = back(world, &mut entry, !stopped, wish.leave_down).await {
            entry.error = Some(error.sentence.clone());
            // The journal has the way back already; why it was not finished is only said.
            let _ = world.record(&entry).await;
            return Err(stands(&entry, error));
        }
        return Ok(Ended::Back);
    }
    let rest = [Step::StartDestination, Step::RetireSource, Step::Commit];
    match advance(world, &mut entry, &rest).await {
        Ok(()) => Ok(Ended::Moved),
        Err(error) if error.uncertain => Err(stands(&entry, error)),
        Err(error) => Err(failed(world, entry, error).await),
    }
}

/// The registry names no claim any more: the move was committed, or released, or another one came after it.
async fn unclaimed(world: &mut dyn World, mut entry: Entry, wish: Wish) -> Result<Ended, PlacementError> {
    let placed = world.placed_on().await?;
    if placed == entry.claim.to_host && entry.step == Step::Commit {
        for step in [Step::StartDestination, Step::RetireSource] {
            world.act(Action::Forward(step)).await?;
        }
        tidy(world).await;
        return Ok(Ended::Moved);
    }
    if placed == entry.claim.from_host {
        back(world, &mut entry, true, wish.leave_down).await?;
        return Ok(Ended::Back);
    }
    world.forget().await?;
    Ok(if placed == entry.claim.to_host { Ended::Moved } else { Ended::Back })
}

async fn advance(world: &mut dyn World, entry: &mut Entry, steps: &[Step]) -> Result<(), PlacementError> {
    for step in steps {
        entry.step = entry.step.max(*step);
        world.record(entry).await?;
        if world.interrupted() {
            return Err(PlacementError::failed(format!("stopped by a signal before {}", step.word())));
        }
        world.act(Action::Forward(*step)).await?;
    }
    tidy(world).await;
    Ok(())
}

/// The move is made; what is left over costs a line.
async fn tidy(world: &mut dyn World) {
    if let Err(error) = world.act(Action::Tidy).await {
        world.note(format!("the move is made; what was kept for undoing it is still there: {error}"));
    }
    if let Err(error) = world.forget().await {
        world.note(format!("the move is made; its journal entry is still there: {error}"));
    }
}

/// A step failed: everything goes back, and the sentence says so.
async fn failed(world: &mut dyn World, mut entry: Entry, error: PlacementError) -> PlacementError {
    entry.error = Some(error.sentence.clone());
    let (profile, from) = (entry.claim.profile.clone(), entry.claim.from_host.clone());
    match back(world, &mut entry, false, false).await {
        Ok(()) => {
            let sentence = format!("{error}; {profile} is back on {from} and the claim is released");
            error.saying(sentence)
        }
        Err(second) => {
            let sentence = format!("{error}; going back failed too: {second}");
            stands(&entry, error.saying(sentence))
        }
    }
}

fn stands(entry: &Entry, error: PlacementError) -> PlacementError {
    let sentence = format!(
        "{error}; the claim {} may still stand: `stado placement status` explains it and `stado placement recover` ends it",
        entry.claim.id
    );
    error.saying(sentence)
}

/// Undoes what may have been done, in the order in which nothing runs twice. What must succeed ends it with an error, so that
/// the claim stands; what is only left over costs a line. `revive`: the source's services are started although this
/// transaction never stopped them, since a power cut may have. `leave_down`: that they come up need not succeed.
async fn back(world: &mut dyn World, entry: &mut Entry, revive: bool, leave_down: bool) -> Result<(), PlacementError> {
    entry.back = true;
    if let Err(error) = world.record(entry).await {
        world.note(format!("the way back is not in the journal: {error}"));
    }
    let begun = |step: Step| entry.step >= step;
    if begun(Step::StartDestination) {
        world.act(Action::StopDestination).await?;
    }
    if begun(Step::Routing) {
        world.act(Action::RouteBack).await?;
    }
    if begun(Step::StopSource) {
        for action in [Action::EnableSource, Action::StartSource] {
            match world.act(action).await {
                // Nothing runs on the destination by now.
                Err(error) if leave_down && !error.uncertain => {
                    world.note(format!("the services do not come up on {}: {error}", entry.claim.from_host));
                }
                done => done?,
            }
        }
    } else if revive && let Err(error) = world.act(Action::StartSource).await {
        world.note(format!("the transaction had not touched the services yet, and they do not come up: {error}"));
    }
    if begun(Step::CopyState)
        && let Err(error) = world.act(Action::RestoreState).await
    {
        world.note(format!("copied state is left on {}: {error}", entry.claim.to_host));
    }
    world.act(Action::Release).await?;
    if let Err(error) = world.forget().await {
        world.note(format!("the claim is released; its journal entry is still there: {error}"));
    }
    Ok(())
}
