//! `stado placement …`: services on the move (fleet contract §6.11). Everything runs on the authority; elsewhere a verb asks
//! the authority to run it.
mod elsewhere;
mod evict;
mod hosts;
mod movement;
mod mover;
mod recover;
mod registry;
mod status;

pub(crate) use evict::evict;
pub(crate) use movement::movement;
pub(crate) use recover::recover;
pub(crate) use status::status;
