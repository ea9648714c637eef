//! Which target this host is (fleet contract §1.2), by the names a target declares for itself.
use super::{Registry, Target};
use crate::fault::{Blame, Class, Faulty};
use crate::name::{SshDestination, TargetName};

/// Two or more targets claim the name of this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hostname '{hostname}' matches multiple registry targets: {}", join(.targets))]
pub struct Ambiguous {
    /// This host's name, normalised.
    pub hostname: String,
    /// Who claims it, in document order.
    pub targets: Vec<TargetName>,
}

impl Faulty for Ambiguous {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        Class::Config
    }
}

fn join(targets: &[TargetName]) -> String {
    targets.iter().map(TargetName::as_str).collect::<Vec<_>>().join(", ")
}

/// A host name as identities are compared: trimmed, lower case, no trailing dot. A user part before `@` keeps its case.
pub fn normalize_hostname(text: &str) -> String {
    let host = |h: &str| h.trim().trim_end_matches('.').to_lowercase();
    match text.trim().rsplit_once('@') {
        Some((user, rest)) => format!("{}@{}", user.trim(), host(rest)),
        None => host(text),
    }
}

/// The target that declares this host's name. A name with a user part (`alice@devbox`) is this host only for that user,
/// and then comes before one without, so that several people on one machine can each have a target.
pub fn lookup_self(registry: &Registry, hostname: &str, user: &str) -> Result<Option<TargetName>, Ambiguous> {
    let hostname = normalize_hostname(hostname);
    let with_user = format!("{user}@{hostname}");
    for wanted in [with_user, hostname.clone()] {
        let claims = |t: &&Target| identities(t).any(|id| id == wanted);
        let targets: Vec<_> = registry.targets.values().filter(claims).map(|t| t.name.clone()).collect();
        match targets.as_slice() {
            [] => {}
            [only] => return Ok(Some(only.clone())),
            _ => return Err(Ambiguous { hostname, targets }),
        }
    }
    Ok(None)
}

/// Everything a target may be recognised by: its name, its hostnames, and the hosts of its connection paths.
fn identities(target: &Target) -> impl Iterator<Item = String> + '_ {
    let by_user = names_users(target.hostnames.iter().map(String::as_str));
    std::iter::once(target.name.as_str().to_owned())
        .chain(target.hostnames.iter().map(|h| normalize_hostname(h)))
        .chain(target.paths.iter().map(move |p| destination_identity(&p.destination, by_user)))
}

/// Whether a target tells the users of its machine apart.
pub(crate) fn names_users<'a>(mut hostnames: impl Iterator<Item = &'a str>) -> bool {
    hostnames.any(|h| h.contains('@'))
}

/// The identity in a connection path: its host; with the login name where the target tells users apart.
pub(crate) fn destination_identity(destination: &SshDestination, by_user: bool) -> String {
    match &destination.user {
        Some(user) if by_user => normalize_hostname(&format!("{user}@{}", destination.host)),
        _ => normalize_hostname(&destination.host),
    }
}
