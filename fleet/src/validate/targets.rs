//! Targets: names, kinds, hostnames, connection paths.
use super::at::{At, Findings};
use super::identity::Identities;
use super::read::{self, Object, optional_text, some};
use crate::document::{Target, normalize_hostname};
use crate::name::{ConnectionPath, SshDestination, TargetName, is_identifier};
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::HashSet;
use std::net::Ipv4Addr;

const KINDS: [&str; 3] = ["gcp", "local", "vast"];
const PLATFORMS: [&str; 2] = ["darwin-arm64", "linux-amd64"];
const MOST_FALLBACKS: usize = 16;
/// Name of the path that `ssh` declares.
const PRIMARY: &str = "primary";

/// A target by its name: what other sections ask about it, and what it says itself. Kept even when other findings exist,
/// so that one wrong key does not turn every reference to the target into a finding.
pub(super) struct Known<'v> {
    pub(super) typed: Target,
    pub(super) raw: &'v Object,
    /// Every name, label and unit of the units it declares.
    units: HashSet<&'v str>,
}

/// The targets that have a name, in document order.
pub(super) struct Targets<'v>(pub(super) IndexMap<TargetName, Known<'v>>);

impl<'v> Targets<'v> {
    pub(super) fn get(&self, name: &str) -> Option<&Known<'v>> {
        self.0.get(name)
    }
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
    pub(super) fn into_typed(self) -> IndexMap<TargetName, Target> {
        self.0.into_iter().map(|(name, known)| (name, known.typed)).collect()
    }
}

impl Known<'_> {
    /// Whether the host declares a unit by this name, label or unit (§1.2).
    pub(super) fn declares_unit(&self, wanted: &str) -> bool {
        self.units.contains(wanted)
    }
}

fn units(raw: &Object) -> HashSet<&str> {
    let units = raw.get("services").and_then(Value::as_array).into_iter().flatten();
    let names = units.flat_map(|unit| ["name", "label", "unit"].into_iter().map(move |key| unit.get(key)));
    names.filter_map(|name| name?.as_str()).collect()
}

pub(super) fn read<'v>(root: &'v Object, out: &mut Findings) -> Targets<'v> {
    let mut targets = Targets(IndexMap::new());
    let at = At::ROOT.key("targets");
    let Some(list) = read::array(root.get("targets").unwrap_or(&Value::Null), at, out) else {
        return targets;
    };
    let mut identities = Identities::default();
    for (i, value) in list.iter().enumerate() {
        let at = at.index(i);
        let Some(raw) = read::object(value, at, out) else { continue };
        let name = name(raw, &targets, at, out);
        let described = describe(raw, at, out);
        identities.declare(i, name.as_ref(), &described, raw, out);
        if let Some(name) = name {
            targets.0.insert(name.clone(), Known { typed: described.named(name), raw, units: units(raw) });
        }
    }
    targets
}

fn name(raw: &Object, known: &Targets<'_>, at: At<'_>, out: &mut Findings) -> Option<TargetName> {
    let name = raw.get("name").and_then(Value::as_str).and_then(|n| n.parse::<TargetName>().ok());
    let Some(name) = name else {
        out.add(at.key("name"), "must be a lowercase target identifier");
        return None;
    };
    if known.contains(name.as_str()) {
        out.add(at.key("name"), format!("duplicate target name '{name}'"));
        return None;
    }
    Some(name)
}

/// A target without its name: one whose name is not usable is still read for its findings.
pub(super) struct Described {
    kind: String,
    pub(super) hostnames: Vec<String>,
    pub(super) paths: Vec<ConnectionPath>,
    stado_command: Option<String>,
    host_keys: Vec<String>,
    resolver_keys: Vec<String>,
}

impl Described {
    fn named(self, name: TargetName) -> Target {
        let Self { kind, hostnames, paths, stado_command, host_keys, resolver_keys } = self;
        Target { name, kind, paths, hostnames, stado_command, host_keys, resolver_keys, resolver: None }
    }
}

fn describe(raw: &Object, at: At<'_>, out: &mut Findings) -> Described {
    let kind = one_of(raw, "kind", &KINDS, "", at, out).to_owned();
    one_of(raw, "release_platform", &PLATFORMS, " and must be confirmed by host inventory", at, out);
    if some(raw, "role").is_some_and(|role| !role.as_str().is_some_and(is_identifier)) {
        out.add(at.key("role"), "must be a lowercase target identifier");
    }
    if some(raw, "host_heuristic").is_some_and(|h| h.as_str() != Some("always-on")) {
        out.add(at.key("host_heuristic"), "must be the supported selector 'always-on'");
    }
    let hostnames = hostnames(raw, at, out);
    let mut paths: Vec<ConnectionPath> = primary(raw, at, out).into_iter().collect();
    paths.extend(fallbacks(raw, at, out));
    let stado_command = optional_text(raw, "stado_command", at, out).map(str::to_owned);
    if stado_command.as_deref().is_some_and(|c| !read::is_absolute_path(c)) {
        out.add(at.key("stado_command"), "must be an absolute path without '..'");
    }
    let (host_keys, resolver_keys) = (keys(raw, "ssh_host_keys", at, out), keys(raw, "resolver_keys", at, out));
    Described { kind, hostnames, paths, stado_command, host_keys, resolver_keys }
}

/// Public keys of a host (keys of ours), without their comments.
fn keys(raw: &Object, key: &str, at: At<'_>, out: &mut Findings) -> Vec<String> {
    let at_list = at.key(key);
    let list = some(raw, key).and_then(|value| read::array(value, at_list, out)).unwrap_or_default();
    let mut keys = Vec::with_capacity(list.len());
    for (j, value) in list.iter().enumerate() {
        match value.as_str().and_then(public_key) {
            Some(key) => keys.push(key),
            None => out.add(at_list.index(j), "must be an SSH public key, as `ssh-ed25519 AAAA…`"),
        }
    }
    keys
}

/// `type base64` of a public key line that is one.
fn public_key(line: &str) -> Option<String> {
    let key = russh::keys::PublicKey::from_openssh(line.trim()).ok()?;
    russh::keys::PublicKey::from(key.key_data().clone()).to_openssh().ok()
}

/// A text from a closed list, printed as the contract prints lists.
fn one_of<'v>(raw: &'v Object, key: &str, list: &[&str], more: &str, at: At<'_>, out: &mut Findings) -> &'v str {
    let text = raw.get(key).and_then(Value::as_str).unwrap_or_default();
    if !list.contains(&text) {
        out.add(at.key(key), format!("must be one of ['{}']{more}", list.join("', '")));
    }
    text
}

fn hostnames(raw: &Object, at: At<'_>, out: &mut Findings) -> Vec<String> {
    let at = at.key("hostnames");
    let Some(list) = raw.get("hostnames").and_then(|v| read::array(v, at, out)) else {
        return Vec::new();
    };
    let mut read = Vec::with_capacity(list.len());
    for (j, value) in list.iter().enumerate() {
        match hostname(value) {
            Ok(hostname) => read.push(hostname.to_owned()),
            Err(sentence) => out.add(at.index(j), sentence),
        }
    }
    read
}

/// A hostname as it has to be declared; a user part is ours (design, choices: several people on one machine).
fn hostname(value: &Value) -> Result<&str, String> {
    let text = value.as_str().ok_or("must be a string")?;
    let normalized = normalize_hostname(text);
    if normalized.is_empty() {
        return Err("must not be empty".into());
    }
    if normalized != text {
        return Err(format!("must be normalized as '{normalized}'"));
    }
    let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    let strange = |c: char| c.is_whitespace() || c == '@' || c == '/';
    if host.is_empty() || host.contains(strange) || user.is_some_and(|u| u.is_empty() || u.contains(strange)) {
        return Err("must be a hostname, not a URL or SSH destination".into());
    }
    Ok(text)
}

fn primary(raw: &Object, at: At<'_>, out: &mut Findings) -> Option<ConnectionPath> {
    let at = at.key("ssh");
    let value = some(raw, "ssh")?;
    let Some(text) = value.as_str() else {
        out.add(at, "must be a string or null");
        return None;
    };
    destination(text, at, out).map(|destination| ConnectionPath { name: PRIMARY.into(), destination })
}

fn destination(text: &str, at: At<'_>, out: &mut Findings) -> Option<SshDestination> {
    text.parse().map_err(|e: crate::name::NameError| out.add(at, e.0)).ok()
}

fn fallbacks(raw: &Object, at: At<'_>, out: &mut Findings) -> Vec<ConnectionPath> {
    let at = at.key("ssh_fallbacks");
    let Some(list) = some(raw, "ssh_fallbacks").and_then(|v| read::array(v, at, out)) else {
        return Vec::new();
    };
    if list.len() > MOST_FALLBACKS {
        out.add(at, format!("must contain at most {MOST_FALLBACKS} paths"));
    }
    let mut paths: Vec<ConnectionPath> = Vec::with_capacity(list.len());
    for (j, value) in list.iter().take(MOST_FALLBACKS).enumerate() {
        let at = at.index(j);
        let Some(fallback) = read::object(value, at, out) else { continue };
        let name = path_name(fallback, &paths, at, out);
        let destination = fallback_destination(fallback, at, out);
        if let (Some(name), Some(destination)) = (name, destination) {
            paths.push(ConnectionPath { name: name.to_owned(), destination });
        }
    }
    paths
}

fn path_name<'v>(fallback: &'v Object, known: &[ConnectionPath], at: At<'_>, out: &mut Findings) -> Option<&'v str> {
    let name = fallback.get("name").and_then(Value::as_str).filter(|n| is_identifier(n) && *n != PRIMARY);
    match name {
        None => out.add(at.key("name"), "must be a lowercase path identifier other than 'primary'"),
        Some(name) if known.iter().any(|p| p.name == name) => {
            out.add(at.key("name"), format!("duplicate SSH path name '{name}'"));
        }
        Some(_) => {}
    }
    name
}

fn fallback_destination(fallback: &Object, at: At<'_>, out: &mut Findings) -> Option<SshDestination> {
    let at = at.key("destination");
    let text = fallback.get("destination").and_then(Value::as_str).unwrap_or_default();
    let destination = destination(text, at, out)?;
    match destination.host.parse::<Ipv4Addr>() {
        Ok(ip) if ip.is_private() || ip.is_link_local() => {
            out.add(
                at,
                format!(
                    "names the lease-assigned address {ip}, which the local network reassigns; name the host by its \
                     network name (for example its .local name)"
                ),
            );
            None
        }
        _ => Some(destination),
    }
}
