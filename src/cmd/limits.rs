//! Descriptors: each connection takes two or more, so the soft limit is raised to the hard one.
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit. Where it cannot be raised what fits is served, and says what does not.
pub(crate) fn raise() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "descriptor_limit_not_raised");
    }
}
