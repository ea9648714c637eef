//! `stado fleet …`: a fleet begins, hosts join it and leave it.
mod door;
mod here;
mod init;
mod invitations;
mod invite;
mod join;
mod leave;
mod paste;
mod start;

pub(crate) use door::{admit_by_hand, door, run_verb};
pub(crate) use here::program;
pub(crate) use init::init;
pub(crate) use invitations::invitations;
pub(crate) use invite::invite;
pub(crate) use join::join;
pub(crate) use leave::leave;
