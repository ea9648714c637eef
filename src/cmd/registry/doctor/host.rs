//! What this host itself shows: whether the registry knows it, and what its service manager says of the declared units.
use super::{Divergence, declared_units, text};
use serde_json::Value;
use stado_fleet::document::Document;
use stado_fleet::name::TargetName;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A service manager that answers slower than that is not asked on.
const PATIENCE: Duration = Duration::from_secs(5);

/// This host, which the registry does not name.
pub(super) fn unmanaged(hostname: &str, location: &str) -> Divergence {
    Divergence {
        finding: "unmanaged-host",
        subject: hostname.to_owned(),
        detail: format!("this host is {hostname}, and no target of {location} goes by that name"),
        remedy: "add it with `stado registry host add`, or say which target it is with `STADO_TARGET` or `target` in \
                 ~/.stado/config.json"
            .to_owned(),
    }
}

/// Declared units of systemd that it calls inactive or failed. A manager that is not there, or does not know the unit by
/// that name, contradicts nothing.
pub(super) async fn not_active(document: &Document, me: &TargetName) -> Vec<Divergence> {
    let mut found = Vec::new();
    for unit in declared_units(document, me).filter(|unit| text(unit, "kind") == "systemd") {
        let Some(name) = ["unit", "name"].map(|key| text(unit, key)).into_iter().find(|name| !name.is_empty()) else {
            continue;
        };
        let Some(state) = state(name, domains(text(unit, "path"))).await else { continue };
        found.push(Divergence {
            finding: "unit-not-active",
            subject: text(unit, "name").to_owned(),
            detail: format!("{me} declares the unit {name}, and systemd says that it is {state}"),
            remedy: format!("see `systemctl status {name}`; start it, or take it out of targets[{me}].services"),
        });
    }
    found
}

/// Where a unit may run; its file tells, where one is declared.
fn domains(path: &str) -> &'static [&'static str] {
    match path {
        "" => &["--system", "--user"],
        path if path.contains("/systemd/user/") => &["--user"],
        _ => &["--system"],
    }
}

/// What it is, when no domain has it active and one knows that it is not.
async fn state(unit: &str, domains: &[&str]) -> Option<String> {
    let mut known = None;
    for domain in domains {
        match is_active(unit, domain).await?.as_str() {
            "active" | "activating" | "reloading" => return None,
            state @ ("inactive" | "failed" | "deactivating") => known = Some(state.to_owned()),
            _ => {}
        }
    }
    known
}

async fn is_active(unit: &str, domain: &str) -> Option<String> {
    let mut command = tokio::process::Command::new("systemctl");
    command.args([domain, "is-active", "--", unit]).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Unit files of Stado on this host that its target does not declare. The resolver's own is no managed service.
pub(super) fn unmanaged_agents(document: &Document, me: &TargetName, home: &Path) -> Vec<Divergence> {
    let places = [
        PathBuf::from("/etc/systemd/system"),
        home.join(".config/systemd/user"),
        PathBuf::from("/Library/LaunchDaemons"),
        home.join("Library/LaunchAgents"),
    ];
    let mut files: Vec<PathBuf> = places.iter().flat_map(|dir| agents_in(dir)).collect();
    files.retain(|file| !declared_units(document, me).any(|unit| declares(unit, file)));
    files.sort();
    files
        .into_iter()
        .map(|file| Divergence {
            finding: "unmanaged-agent",
            subject: stem(&file),
            detail: format!(
                "{} is a unit of Stado on {me}, and targets[{me}].services does not declare it",
                file.display()
            ),
            remedy: format!("declare it there, or disable it and remove {}", file.display()),
        })
        .collect()
}

fn agents_in(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|file| file.extension().is_some_and(|e| e == "service" || e == "plist"))
        .filter(|file| stem(file).contains("stado") && !stem(file).ends_with("stado-resolver"))
        .collect()
}

fn declares(unit: &Value, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let same = |key: &str| [stem(file).as_str(), &name].contains(&text(unit, key));
    Path::new(text(unit, "path")) == file || ["name", "label", "unit"].into_iter().any(same)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
