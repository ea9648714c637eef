//! Host keys of the fleet's hosts in `~/.stado/known_hosts`: written from the registry, as lines of ours among a person's.
use crate::disk::{self, DiskError, Lock};
use crate::document::Registry;
use crate::name::{SshDestination, TargetName};
use std::path::Path;

/// Begins the comment of a line that is ours; what follows is the target.
const OURS: &str = "stado:";
const LARGEST: u64 = 16 << 20;

/// The lines for every host but `me` whose keys the registry tells.
pub fn known_hosts(registry: &Registry, me: &TargetName) -> Vec<String> {
    let others = registry.targets.values().filter(|target| target.name != *me);
    others.flat_map(|t| t.paths.iter().flat_map(move |path| lines(&t.name, &path.destination, &t.host_keys))).collect()
}

/// The lines for one way to a host.
pub(super) fn lines(target: &TargetName, way: &SshDestination, keys: &[String]) -> Vec<String> {
    let host = way.host.to_ascii_lowercase();
    let listed = match way.port {
        None | Some(22) => host,
        Some(port) => format!("[{host}]:{port}"),
    };
    keys.iter().map(|key| format!("{listed} {key} {OURS}{target}")).collect()
}

/// Makes `wanted` the lines of ours in `file`; lines of others stay. `whole`: they are all that is known, so that others of
/// ours go. Whether anything was written.
///
/// # Errors
/// A file that cannot be read or written.
pub fn keep(file: &Path, wanted: &[String], whole: bool) -> Result<bool, DiskError> {
    if wanted.is_empty() && (!whole || !file.exists()) {
        return Ok(false);
    }
    if let Some(directory) = file.parent() {
        disk::private_dir(directory)?;
    }
    let _lock = Lock::exclusive(&file.with_extension("lock"))?;
    let before = disk::read_unlinked(file, LARGEST)?.unwrap_or_default();
    let before = String::from_utf8_lossy(&before).into_owned();
    let next = merged(&before, wanted, whole);
    if next == before {
        return Ok(false);
    }
    disk::replace(file, next.as_bytes())?;
    Ok(true)
}

/// Others' lines as they are, then ours.
fn merged(before: &str, wanted: &[String], whole: bool) -> String {
    let ours = |line: &str| line.rsplit(' ').next().is_some_and(|last| last.starts_with(OURS));
    let host = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let replaced: Vec<String> = wanted.iter().map(|line| host(line)).collect();
    let goes = |line: &str| ours(line) && (whole || replaced.contains(&host(line)));
    let mut text: String = before.lines().filter(|line| !goes(line)).map(|line| format!("{line}\n")).collect();
    wanted.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(way: &str, key: &str) -> Vec<String> {
        lines(&"tower".parse().unwrap(), &way.parse().unwrap(), &[key.to_owned()])
    }

    #[test]
    fn hosts_are_listed_as_known_hosts_lists_them() {
        assert_eq!(line("me@Tower.local:17622", "t K"), ["[tower.local]:17622 t K stado:tower"]);
        assert_eq!(line("tower.local", "t K"), ["tower.local t K stado:tower"]);
        assert_eq!(line("me@[::1]:2222", "t K"), ["[::1]:2222 t K stado:tower"]);
    }

    #[test]
    fn lines_of_others_stay_and_ours_follow_the_registry() {
        let (own, old) = ("# mine\ntower.local t OLD me@desk\n", "[b]:1 t K1 stado:b\n[c]:1 t K2 stado:c\n");
        let before = format!("{own}{old}");
        let now = ["[b]:1 t NEW stado:b".to_owned()];
        assert_eq!(merged(&before, &now, true), format!("{own}[b]:1 t NEW stado:b\n"));
        assert_eq!(merged(&before, &now, false), format!("{own}[c]:1 t K2 stado:c\n[b]:1 t NEW stado:b\n"));
        let once = merged(&before, &now, true);
        assert_eq!(merged(&once, &now, true), once, "the same again is nothing new");
        assert_eq!(merged(&before, &[], true), own);
    }

    #[test]
    fn a_file_is_written_only_when_something_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("stado/known_hosts");
        assert!(!keep(&file, &[], true).unwrap());
        assert!(!file.exists());
        let lines = line("b:1", "t K");
        assert!(keep(&file, &lines, true).unwrap());
        assert!(!keep(&file, &lines, true).unwrap());
        assert!(keep(&file, &[], true).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "");
    }
}
