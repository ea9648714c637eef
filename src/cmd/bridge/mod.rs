//! `stado service publish|unpublish|use|unuse|move`: services of a mesh in the fleet's directory (docs/bridge.md).
mod movement;
mod publish;
mod served;
mod unpublish;
mod uses;

pub(crate) use movement::movement;
pub(crate) use publish::publish;
pub(crate) use unpublish::unpublish;
pub(crate) use uses::{unuse, use_service};

use super::fleet::Fleet;
use crate::config::Env;
use crate::exit::Failure;
use stado_fleet::fault::Class;
use stado_fleet::name::{Generation, TargetName};

/// The fleet, and which of its hosts this is. Never from a copy: what follows is a write.
async fn here(env: &Env) -> Result<(Fleet, TargetName), Failure> {
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(false).await.map_err(no_fleet)?;
    let me = fleet.target(&answer.snapshot.valid.registry, None)?;
    Ok((fleet, me))
}

/// A host without any registry belongs to no fleet yet.
fn no_fleet(failure: Failure) -> Failure {
    match failure.class {
        Class::NotFound => Failure {
            message: format!("{}; this host belongs to no fleet yet (docs/fleet.md)", failure.message),
            ..failure
        },
        _ => failure,
    }
}

fn number(generation: Option<Generation>) -> Option<u64> {
    generation.map(|g| g.0)
}

fn shown(generation: Option<Generation>) -> String {
    number(generation).map_or("-".to_owned(), |g| g.to_string())
}
