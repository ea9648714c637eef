//! Which target of the registry this host is (design, choices: who this host is; fleet contract §1.2). Pure.
use stado_fleet::document::Registry;
use stado_fleet::name::TargetName;

/// What is known about this host before any registry was read.
#[derive(Debug, Clone)]
pub struct Host {
    /// `STADO_TARGET` or `target` of the configuration, when given: believed without a look at the hostname.
    pub target: Option<TargetName>,
    /// `--target`, when given: what a unit file that was copied from another host may say. It does not make this host
    /// another one; a host that is not it serves nothing of the fleet.
    pub asked: Option<TargetName>,
    /// The machine's hostname, as the system gives it.
    pub hostname: String,
    /// The account that the daemon runs under; tells several people on one machine apart.
    pub user: String,
}

/// This host is no target, or more than one. `Display` is the sentence of fleet contract §4.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The given target is not in the registry.
    #[error("resolver target \"{0}\" is not registered")]
    NotRegistered(TargetName),
    /// It is not the one that was asked for.
    #[error("resolver target \"{asked}\" does not match this host (\"{here}\")")]
    Mismatch {
        /// Asked for.
        asked: TargetName,
        /// Who it is.
        here: TargetName,
    },
    /// No target names this host.
    #[error("resolver host \"{0}\" has no registry target identity")]
    Unknown(String),
    /// More than one does.
    #[error("hostname '{hostname}' matches multiple registry targets: {}", targets.join(", "))]
    Ambiguous {
        /// Normalised hostname.
        hostname: String,
        /// The targets, in document order.
        targets: Vec<String>,
    },
}

/// Trims, lower-cases and drops one trailing dot.
pub fn normalise(hostname: &str) -> String {
    let text = hostname.trim().to_lowercase();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// The target of this host: the given one, else the one that [`lookup_self`] finds; and it has to be the one asked for.
pub fn identify(registry: &Registry, host: &Host) -> Result<TargetName, IdentityError> {
    let known = |target: &TargetName| match registry.targets.contains_key(target) {
        true => Ok(target.clone()),
        false => Err(IdentityError::NotRegistered(target.clone())),
    };
    let asked = host.asked.as_ref().map(known).transpose()?;
    let here = match &host.target {
        Some(target) => known(target)?,
        None => lookup_self(registry, &host.hostname, &host.user)?,
    };
    match asked {
        Some(asked) if asked != here => Err(IdentityError::Mismatch { asked, here }),
        _ => Ok(here),
    }
}

/// The target whose name, hostnames or primary SSH host is this hostname. A declared `user@host` outranks a bare host and
/// speaks only for that user.
pub fn lookup_self(registry: &Registry, hostname: &str, user: &str) -> Result<TargetName, IdentityError> {
    let me = normalise(hostname);
    let matching = |personal: bool| -> Vec<&TargetName> {
        registry
            .targets
            .values()
            .filter(|target| {
                let declared = target.hostnames.iter().any(|entry| match entry.rsplit_once('@') {
                    Some((who, host)) => personal && who == user && host == me,
                    None => !personal && *entry == me,
                });
                let primary = target.paths.first().filter(|path| path.name == "primary");
                let by_ssh = primary.is_some_and(|path| normalise(&path.destination.host) == me);
                declared || (!personal && (target.name.as_str() == me || by_ssh))
            })
            .map(|target| &target.name)
            .collect()
    };
    let personal = matching(true);
    let found = if personal.is_empty() { matching(false) } else { personal };
    match found.as_slice() {
        [] => Err(IdentityError::Unknown(hostname.trim().to_owned())),
        [one] => Ok((*one).clone()),
        many => Err(IdentityError::Ambiguous { hostname: me, targets: many.iter().map(ToString::to_string).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stado_fleet::document::Target;
    use stado_fleet::name::ConnectionPath;

    fn target(name: &str, ssh: Option<&str>, hostnames: &[&str]) -> Target {
        let path = |d: &str| ConnectionPath { name: "primary".into(), destination: d.parse().unwrap() };
        Target {
            name: name.parse().unwrap(),
            kind: "local".into(),
            paths: ssh.map(path).into_iter().collect(),
            hostnames: hostnames.iter().map(|h| (*h).to_owned()).collect(),
            stado_command: None,
            host_keys: Vec::new(),
            resolver_keys: Vec::new(),
            resolver: None,
        }
    }
    fn registry(targets: Vec<Target>) -> Registry {
        Registry {
            targets: targets.into_iter().map(|t| (t.name.clone(), t)).collect(),
            directory: None,
            transactions: vec![],
            profiles: Default::default(),
            succession: Default::default(),
        }
    }
    fn found(registry: &Registry, hostname: &str, user: &str) -> String {
        match lookup_self(registry, hostname, user) {
            Ok(target) => target.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn name_hostnames_and_ssh_host_identify_a_host() {
        let registry = registry(vec![target("a", None, &["a.local"]), target("b", Some("ops@Box.example:22"), &[])]);
        assert_eq!(found(&registry, "A", "u"), "a");
        assert_eq!(found(&registry, " a.local.\n", "u"), "a");
        assert_eq!(found(&registry, "box.example", "u"), "b");
        assert_eq!(found(&registry, "elsewhere", "u"), "resolver host \"elsewhere\" has no registry target identity");
    }

    #[test]
    fn people_on_one_machine_are_told_apart_by_user() {
        let registry = registry(vec![
            target("box", None, &[]),
            target("box-ann", None, &["ann@box"]),
            target("box-bo", None, &["bo@box"]),
        ]);
        assert_eq!(found(&registry, "box", "ann"), "box-ann");
        assert_eq!(found(&registry, "box", "bo"), "box-bo");
        assert_eq!(found(&registry, "box", "cy"), "box");
    }

    #[test]
    fn two_matches_are_refused_with_both_names() {
        let registry = registry(vec![target("a", None, &["x"]), target("b", Some("x"), &[])]);
        assert_eq!(found(&registry, "X", "u"), "hostname 'x' matches multiple registry targets: a, b");
    }

    #[test]
    fn a_given_target_is_believed_but_must_be_registered() {
        let registry = registry(vec![target("a", None, &["x"]), target("b", None, &[])]);
        let host =
            |t: &str| Host { target: Some(t.parse().unwrap()), asked: None, hostname: "x".into(), user: "u".into() };
        assert_eq!(identify(&registry, &host("b")).unwrap().as_str(), "b");
        assert_eq!(identify(&registry, &host("c")).unwrap_err().to_string(), "resolver target \"c\" is not registered");
    }

    #[test]
    fn a_flag_makes_no_host_another_one() {
        let registry = registry(vec![target("a", None, &["x"]), target("b", None, &[])]);
        let asking = |asked: &str, target: Option<&str>, hostname: &str| {
            let [asked, target] = [Some(asked), target].map(|name| name.map(|name| name.parse().unwrap()));
            let found = identify(&registry, &Host { target, asked, hostname: hostname.into(), user: "u".into() });
            found.map_or_else(|error| error.to_string(), |target| target.to_string())
        };
        assert_eq!(asking("a", None, "x"), "a");
        assert_eq!(asking("b", None, "x"), "resolver target \"b\" does not match this host (\"a\")");
        assert_eq!(asking("b", Some("b"), "x"), "b");
        assert_eq!(asking("a", Some("b"), "x"), "resolver target \"a\" does not match this host (\"b\")");
        assert_eq!(asking("a", None, "elsewhere"), "resolver host \"elsewhere\" has no registry target identity");
        assert_eq!(asking("c", None, "x"), "resolver target \"c\" is not registered");
    }
}
