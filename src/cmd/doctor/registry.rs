//! `registry`: is it read. Never from a copy: that one is there is no sign that anything works.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::config::Backend;
use crate::exit::Failure;
use stado_fleet::authority::Answer;
use stado_fleet::fault::Class;

const ABOUT: (&str, &str) = ("registry", "Registry");

/// Reads it. The answer is what the other checks compare with.
pub(super) async fn check(fleet: &Fleet) -> (Check, Option<Answer>) {
    match fleet.read(false).await {
        Ok(answer) => (read(&answer), Some(answer)),
        Err(failure) if failure.class == Class::NotFound && alone(fleet) => {
            let why = format!("{}: this host is the mesh alone", failure.message);
            (Check::skip(ABOUT, why), None)
        }
        Err(failure) => (unreadable(&failure), None),
    }
}

/// Nothing says that there should be a registry: no store was chosen, and none was ever read.
fn alone(fleet: &Fleet) -> bool {
    fleet.host.storage.backend == Backend::Local && fleet.copy().is_none()
}

fn read(answer: &Answer) -> Check {
    let registry = &answer.snapshot.valid.registry;
    let (location, version, targets) =
        (answer.source.location(), &answer.snapshot.store_version, registry.targets.len());
    match &registry.directory {
        Some(directory) => Check::ok(
            ABOUT,
            format!(
                "{location} generation {version}, directory {}, {targets} target(s), {} service(s)",
                directory.generation,
                directory.services.len()
            ),
        ),
        None => Check::warn(
            ABOUT,
            format!("{location} generation {version} carries no service_directory, so that no service is placed"),
            "Add a service_directory with `stado registry push`.",
        ),
    }
}

/// The store's own sentence.
pub(super) fn unreadable(failure: &Failure) -> Check {
    let remedy = match failure.class {
        Class::InfraDown | Class::Timeout | Class::RateLimit => {
            "Bring the authority or the store back; `stado host ping` tells which path to it answers."
        }
        Class::Auth => "Give this host a key or a token that is taken there.",
        Class::NotFound => "Write the registry with `stado registry push` or `stado registry import`.",
        _ => "Correct what it names, then run `stado registry validate`.",
    };
    Check::fail(ABOUT, failure.message.clone(), remedy)
}
