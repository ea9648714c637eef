//! Units that the targets declare: their files, and who is to run them.
use super::{Divergence, declared_units, named, text};
use serde_json::Value;
use stado_fleet::document::Document;
use stado_fleet::name::TargetName;
use std::path::Path;

/// Units of this host whose declared file is not there.
pub(super) fn missing(document: &Document, me: &TargetName) -> Vec<Divergence> {
    let units = declared_units(document, me).map(|unit| (text(unit, "name"), text(unit, "path")));
    units
        .filter(|(_, path)| path.starts_with('/') && !Path::new(path).exists())
        .map(|(name, path)| Divergence {
            finding: "missing-plist",
            subject: name.to_owned(),
            detail: format!("{me} declares its unit file at {path}, and there is none"),
            remedy: format!("install the unit at {path}, or correct its path in targets[{me}].services"),
        })
        .collect()
}

/// Units that the host's own service manager cannot run: launchd's on Linux, systemd's on macOS, or a file where the
/// manager does not look.
pub(super) fn misdeclared(document: &Document) -> Vec<Divergence> {
    let mut found = Vec::new();
    for (target, entry) in named(document, "targets") {
        let platform = text(entry, "release_platform");
        for unit in entry.get("services").and_then(Value::as_array).into_iter().flatten() {
            let Some(why) = contradiction(platform, text(unit, "kind"), text(unit, "path")) else { continue };
            let name = text(unit, "name");
            found.push(Divergence {
                finding: "misdeclared-domain",
                subject: name.to_owned(),
                detail: format!("{target} declares {name} as a unit of {}, and {why}", text(unit, "kind")),
                remedy: format!("correct kind or path of {name} in targets[{target}].services"),
            });
        }
    }
    found
}

fn contradiction(platform: &str, kind: &str, path: &str) -> Option<String> {
    let launchd_place = ["/LaunchDaemons/", "/LaunchAgents/"].iter().any(|dir| path.contains(dir));
    match (kind, platform) {
        ("launchd", "linux-amd64") | ("systemd", "darwin-arm64") => Some(format!("{platform} has no {kind}")),
        (_, _) if path.is_empty() => None,
        ("launchd", _) if launchd_place && path.ends_with(".plist") => None,
        ("systemd", _) if !launchd_place && !path.ends_with(".plist") => None,
        ("launchd" | "systemd", _) => Some(format!("{kind} reads no unit at {path}")),
        _ => None,
    }
}
