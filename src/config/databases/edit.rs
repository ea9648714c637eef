//! Changes of `database_api.databases` in the configuration file: in place, everything else as it was.
use super::{KEY, VARIABLE};
use crate::config::{ConfigError, Env, FleetFile, wrong};
use serde_json::{Map, Value, json};
use stado_fleet::czekam;
use stado_fleet::disk;
use std::path::{Path, PathBuf};

/// Far above any configuration file.
const LARGEST: u64 = 16 << 20;

/// Lets `change` change the databases by name, and writes the file when it says that it did. One writer at a time; the file is
/// replaced whole, under the mode that it has; a new one is the owner's alone.
///
/// # Errors
/// A file that is no configuration, or cannot be written; and whatever `change` refuses. Nothing is written then.
pub(crate) fn edit_databases<T, E: From<ConfigError>>(
    env: &Env,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(T, bool), E>,
) -> Result<(T, PathBuf), E> {
    if env.text(VARIABLE)?.is_some() {
        return Err(E::from(ConfigError(format!(
            "{VARIABLE} is set and wins over the configuration file, so that a change of the file would change nothing; unset it"
        ))));
    }
    let named = FleetFile::find(env)?.home_of(env)?;
    // A link is followed: a configuration that is kept elsewhere stays there.
    let path = std::fs::canonicalize(&named).unwrap_or(named);
    let _lock =
        czekam::lock("change of the configuration file", &lock(&path)).map_err(|e| ConfigError(e.to_string()))?;
    let mut root = read(&path)?;
    let databases = object(object(&mut root, "database_api", &path)?, "databases", &path)?;
    let (done, changed) = change(databases)?;
    if changed {
        let text = format!("{:#}\n", Value::Object(root));
        disk::rewrite(&path, text.as_bytes()).map_err(|e| ConfigError(e.to_string()))?;
    }
    Ok((done, path))
}

fn lock(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.lock"))
}

fn read(path: &Path) -> Result<Map<String, Value>, ConfigError> {
    let invalid = |e: &dyn std::fmt::Display| ConfigError(format!("invalid stado config file {}: {e}", path.display()));
    let Some(bytes) = disk::read(path, LARGEST).map_err(|e| invalid(&e.source))? else {
        return Ok(Map::from_iter([("schema_version".to_owned(), json!(1))]));
    };
    match serde_json::from_slice(&bytes).map_err(|e| invalid(&e))? {
        Value::Object(root) => Ok(root),
        _ => wrong(format!("stado config file {} must contain a JSON object", path.display())),
    }
}

/// An object of another, made when it is not there.
fn object<'m>(
    parent: &'m mut Map<String, Value>,
    key: &str,
    path: &Path,
) -> Result<&'m mut Map<String, Value>, ConfigError> {
    let entry = parent.entry(key).or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    match entry {
        Value::Object(map) => Ok(map),
        _ => wrong(format!("{KEY} in {} must be a JSON object of databases by name", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn add(env: &Env, name: &str) -> Result<PathBuf, String> {
        let change = |all: &mut Map<String, Value>| {
            all.insert(name.to_owned(), json!({"engine": "sqlite"}));
            Ok::<_, ConfigError>(((), true))
        };
        edit_databases(env, change).map(|(_, path)| path).map_err(|e| e.0)
    }

    #[test]
    fn everything_else_stays_and_a_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("dotfiles.json");
        std::fs::write(&real, r#"{"z":1.50,"storage":{"backend":"local"},"a":null}"#).unwrap();
        std::fs::create_dir(home.path().join(".stado")).unwrap();
        let link = home.path().join(".stado/config.json");
        symlink(&real, &link).unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap())]);
        assert_eq!(add(&env, "orders").unwrap(), real.canonicalize().unwrap());
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let text = std::fs::read_to_string(&real).unwrap();
        assert!(text.starts_with("{\n  \"z\": 1.50,\n  \"storage\"") && text.ends_with("}\n"), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["database_api"]["databases"]["orders"]["engine"], "sqlite");
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_new_one_is_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("c.json");
        let env = Env::of([("HOME", home.path().to_str().unwrap()), ("STADO_CONFIG", file.to_str().unwrap())]);
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
        add(&env, "one").unwrap();
        assert_eq!(mode(), 0o600);
        for kept in [0o644, 0o640, 0o600] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(kept)).unwrap();
            add(&env, &format!("db{kept}")).unwrap();
            assert_eq!(mode(), kept);
        }
    }

    #[test]
    fn a_home_without_a_file_gets_one_where_it_is_looked_for() {
        let home = tempfile::tempdir().unwrap();
        let text = home.path().to_str().unwrap();
        let named = home.path().join("named.json");
        let env = Env::of([("HOME", text), ("STADO_CONFIG", named.to_str().unwrap())]);
        assert_eq!(add(&env, "orders").unwrap(), named);
        let env = Env::of([("HOME", text)]);
        assert_eq!(add(&env, "orders").unwrap(), home.path().join(".stado/config.json"));
    }

    #[test]
    fn nothing_is_written_for_no_change_nor_over_what_is_no_configuration() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("c.json");
        let env = Env::of([("HOME", home.path().to_str().unwrap()), ("STADO_CONFIG", file.to_str().unwrap())]);
        edit_databases(&env, |_| Ok::<_, ConfigError>(((), false))).unwrap();
        assert!(!file.exists());
        for broken in ["{", "[]", r#"{"database_api":1}"#, r#"{"database_api":{"databases":[]}}"#] {
            std::fs::write(&file, broken).unwrap();
            add(&env, "orders").unwrap_err();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
        }
        let env = Env::of([("HOME", home.path().to_str().unwrap()), (VARIABLE, "{}")]);
        assert!(add(&env, "orders").unwrap_err().contains("unset it"));
    }
}
