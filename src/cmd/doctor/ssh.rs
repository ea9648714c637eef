//! `ssh`: the hosts that this host cannot do without, its authority and those that its adapters lead to, let it in.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::{Tried, try_all};
use stado_fleet::authority::Answer;
use stado_fleet::document::{Registry, Target};
use stado_fleet::link::Stage;
use stado_fleet::name::{SshDestination, TargetName};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

pub(super) const ABOUT: (&str, &str) = ("ssh", "SSH to other hosts");
/// A path that has no session by then is no path to work with.
const PATIENCE: Duration = Duration::from_secs(5);
/// Hosts that are tried; more say no more.
const MOST: usize = 32;

/// A row for each host that does not let this one in.
pub(super) async fn checks(fleet: &Fleet, answer: Option<&Answer>) -> Vec<Check> {
    let Some(answer) = answer else { return vec![Check::skip(ABOUT, "the registry could not be read")] };
    let registry = &answer.snapshot.valid.registry;
    let Some(me) = fleet.me(registry).ok().flatten() else {
        return vec![Check::skip(ABOUT, "this host is no target of the registry")];
    };
    let needed = needed(registry, &me);
    if needed.is_empty() {
        return vec![Check::skip(ABOUT, "this host needs no other one")];
    }
    let mut tries = JoinSet::new();
    for target in needed.iter().filter_map(|name| registry.targets.get(name)).take(MOST).cloned() {
        let link = fleet.link.clone();
        tries.spawn(async move {
            let tried = try_all(&link, &target.paths, PATIENCE).await;
            (target, tried)
        });
    }
    let mut all = tries.join_all().await;
    all.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    let bad: Vec<Check> = all.iter().flat_map(|(target, tried)| of_host(target, tried)).collect();
    if bad.is_empty() { vec![Check::ok(ABOUT, format!("{} host(s) let this one in", all.len()))] } else { bad }
}

/// The authority, and where the services of this host's adapters are.
fn needed(registry: &Registry, me: &TargetName) -> BTreeSet<TargetName> {
    let Some(directory) = &registry.directory else { return BTreeSet::new() };
    let adapters =
        registry.targets.get(me).and_then(|target| target.resolver.as_ref()).map(|resolver| &resolver.adapters);
    let services = adapters.into_iter().flatten().filter_map(|adapter| directory.services.get(&adapter.service));
    let hosts = services.map(|service| service.active_host.clone());
    hosts.chain([directory.authority_target.clone()]).filter(|host| host != me).collect()
}

/// A dead path beside one that answers is worth knowing; none that answers fails.
fn of_host(target: &Target, tried: &[Tried]) -> Vec<Check> {
    let reached = tried.iter().any(Tried::answered);
    if tried.is_empty() {
        let remedy = format!("Declare one: `stado registry host path set {} primary --ssh USER@HOST`.", target.name);
        return vec![Check::fail(ABOUT, format!("{} declares no SSH connection path", target.name), remedy)];
    }
    let dead = target.paths.iter().zip(tried).filter(|(_, tried)| !tried.answered());
    dead.map(|(path, tried)| {
        let detail = format!("{} over {} ({}): {}", target.name, path.name, path.destination, tried.error());
        let remedy = remedy(tried.stage(), &path.destination, target.name.as_str(), &path.name);
        if reached { Check::warn(ABOUT, detail, remedy) } else { Check::fail(ABOUT, detail, remedy) }
    })
    .collect()
}

/// What to type, by what went wrong.
fn remedy(stage: Option<Stage>, destination: &SshDestination, target: &str, path: &str) -> String {
    let SshDestination { user, host, port } = destination;
    let port = port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let login = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    match stage {
        Some(Stage::HostKey) => format!(
            "`ssh-keyscan {port}{host} | ssh-keygen -lf -` shows its key; compare it with `ssh-keygen -lf \
             /etc/ssh/ssh_host_ed25519_key.pub` there, and when they are the same: `ssh-keyscan {port}{host} >> ~/.ssh/known_hosts` \
             (a key that changed: `ssh-keygen -R {host}` first)."
        ),
        Some(Stage::Auth) => format!(
            "Let this account in there: `ssh-copy-id {port}{login}{host}`; for Stado's gate, add the key to its \
             ~/.stado/gate/authorized_keys."
        ),
        Some(Stage::Banner | Stage::Handshake) => format!(
            "Something else than an SSH server answers there, or one that is too old: `ssh {port}-v {login}{host}` tells; correct the \
             path with `stado registry host path set {target} {path} --ssh USER@HOST`."
        ),
        _ => format!(
            "Start sshd (or Stado's gate) there and see that the network leads to it: `stado host ping {target}` tries again; another \
             way is declared with `stado registry host path set {target} NAME --ssh USER@HOST`."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_says_what_to_type() {
        let at: SshDestination = "ops@hub:2222".parse().unwrap();
        assert!(
            remedy(Some(Stage::HostKey), &at, "hub", "primary")
                .contains("`ssh-keyscan -p 2222 hub >> ~/.ssh/known_hosts`")
        );
        assert!(remedy(Some(Stage::Auth), &at, "hub", "primary").contains("`ssh-copy-id -p 2222 ops@hub`"));
        assert!(remedy(Some(Stage::Connect), &at, "hub", "primary").contains("`stado host ping hub`"));
        let plain: SshDestination = "hub".parse().unwrap();
        assert!(remedy(Some(Stage::Auth), &plain, "hub", "primary").contains("`ssh-copy-id hub`"));
    }
}
