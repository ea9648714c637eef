use super::{ConfigError, wrong};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The environment as it was when the program started. An empty value counts as absent.
#[derive(Debug, Clone, Default)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
}

impl Env {
    /// This process's environment.
    pub fn process() -> Self {
        Self { vars: std::env::vars_os().collect() }
    }

    /// A chosen environment, for tests.
    pub fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        Self { vars: pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect() }
    }

    /// A value as the system has it.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Names of all variables that have a value; one that is not UTF-8 is left out.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.vars.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.to_str())
    }

    /// A value as text; one that is not UTF-8 is named, not guessed.
    pub fn text(&self, name: &str) -> Result<Option<String>, ConfigError> {
        match self.raw(name).map(OsStr::to_str) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text.to_owned())),
            Some(None) => wrong(format!("{name} is not valid UTF-8")),
        }
    }

    /// A value as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// The home directory.
    pub fn home(&self) -> Result<PathBuf, ConfigError> {
        match self.path("HOME") {
            Some(home) if home.is_absolute() => Ok(home),
            Some(home) => wrong(format!("HOME is {}, which is not an absolute path", home.display())),
            None => wrong("HOME is not set, so there is no place for ~/.stado: set HOME to your home directory"),
        }
    }

    /// Replaces a leading `~` by the home directory.
    pub fn expand(&self, text: &str) -> Result<PathBuf, ConfigError> {
        match text.strip_prefix('~') {
            Some("") => self.home(),
            Some(rest) if rest.starts_with('/') => Ok(self.home()?.join(rest.trim_start_matches('/'))),
            _ => Ok(PathBuf::from(text)),
        }
    }

    /// The user's configuration directory.
    pub fn config_dir(&self) -> Result<PathBuf, ConfigError> {
        if cfg!(target_os = "macos") {
            return Ok(self.home()?.join("Library/Application Support"));
        }
        match self.path("XDG_CONFIG_HOME").filter(|p| p.is_absolute()) {
            Some(dir) => Ok(dir),
            None => self.home().map(|home| home.join(".config")).or_else(|_| {
                wrong("neither HOME nor XDG_CONFIG_HOME is set, so there is no place for devmesh/state.json: set HOME, or pass --state")
            }),
        }
    }

    /// The control socket when nobody names one: under the home directory, else in the temporary directory.
    pub fn default_socket(&self) -> PathBuf {
        match self.home() {
            Ok(home) => home.join(".devmesh/run/devmesh.sock"),
            Err(_) => self.path("TMPDIR").unwrap_or_else(|| Path::new("/tmp").to_owned()).join("devmesh.sock"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_home_is_said() {
        let error = Env::of([]).home().unwrap_err();
        assert!(error.0.starts_with("HOME is not set"), "{error}");
        assert!(Env::of([("HOME", "x")]).home().is_err());
    }

    #[test]
    fn tilde_is_the_home() {
        let env = Env::of([("HOME", "/h")]);
        assert_eq!(env.expand("~/.stado/x").unwrap(), Path::new("/h/.stado/x"));
        assert_eq!(env.expand("~").unwrap(), Path::new("/h"));
        assert_eq!(env.expand("~other/x").unwrap(), Path::new("~other/x"));
        assert_eq!(env.expand("/a/~").unwrap(), Path::new("/a/~"));
    }

    #[test]
    fn the_socket_has_a_place_without_a_home() {
        assert_eq!(Env::of([("HOME", "/h")]).default_socket(), Path::new("/h/.devmesh/run/devmesh.sock"));
        assert_eq!(Env::of([("TMPDIR", "/t")]).default_socket(), Path::new("/t/devmesh.sock"));
    }

    #[test]
    fn an_empty_value_is_absent() {
        assert_eq!(Env::of([("DEVMESH_SOCKET", "")]).text("DEVMESH_SOCKET").unwrap(), None);
    }
}
