//! Where a database is placed: the directory entry of the same name.
use crate::cmd::directory::reach::{available, reach};
use crate::cmd::fleet::Fleet;
use crate::exit::Failure;
use crate::ui;
use stado_fleet::authority::Answer;
use stado_fleet::document::{DirectoryService, Registry};
use stado_fleet::fault::Class;
use stado_fleet::name::LogicalName;

/// Reads the registry; `None` when there is none at all, so that nothing is placed.
pub(super) async fn registry(fleet: &Fleet) -> Result<Option<Answer>, Failure> {
    match fleet.read(true).await {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.class == Class::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Its entry in the directory.
pub(super) fn entry<'r>(registry: &'r Registry, name: &LogicalName) -> Option<&'r DirectoryService> {
    registry.directory.as_ref()?.services.get(name)
}

/// The address at which `consumer` reaches it on this host, when there is one: the service's own on the host that serves,
/// elsewhere the consumer's adapter.
pub(super) fn address(
    fleet: &Fleet,
    registry: &Registry,
    (name, service): (&LogicalName, &DirectoryService),
    consumer: &str,
) -> Result<Option<String>, Failure> {
    available(registry, name, service)?;
    let Some(me) = fleet.me(registry)? else { return Ok(None) };
    let publisher = fleet.publisher_if_readable();
    let given = |service: &str, consumer: &str| fleet.adapter_bind(&publisher, service, consumer);
    match reach(registry, (name, service), &me, Some(consumer), &given) {
        Ok(reach) => Ok(Some(reach.url())),
        Err(failure) => {
            ui::note(format_args!("{name} has no address on {me} yet: {}", failure.message));
            Ok(None)
        }
    }
}
