//! The fleet's configuration file and `WC_*` variables (fleet contract §2.1): environment > file > default.
use super::{ConfigError, Env, wrong};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The configuration file that was found, if any.
#[derive(Debug, Clone, Default)]
pub struct FleetFile {
    /// Where it is.
    pub path: Option<PathBuf>,
    root: Map<String, Value>,
}

/// Which engine keeps the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A directory of this host.
    Local,
    /// Another host's object API.
    Stado,
    /// Google Cloud Storage.
    Gcs,
    /// Azure blobs.
    Azure,
    /// S3 and its like.
    S3,
    /// etcd.
    Etcd,
}

impl Backend {
    /// Its word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Stado => "stado",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::S3 => "s3",
            Self::Etcd => "etcd",
        }
    }

    fn parse(text: &str) -> Result<Self, ConfigError> {
        match text {
            "local" => Ok(Self::Local),
            "stado" | "stado-object" => Ok(Self::Stado),
            "gcs" => Ok(Self::Gcs),
            "azure" => Ok(Self::Azure),
            "s3" => Ok(Self::S3),
            "etcd" => Ok(Self::Etcd),
            other => {
                wrong(format!("storage.backend is {other:?}; it must be one of local, stado, s3, etcd, gcs, azure"))
            }
        }
    }

    /// The engine that a store's URL names.
    fn of_url(url: &str) -> Result<Self, ConfigError> {
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("s3") => Ok(Self::S3),
            Some("etcd" | "etcds") => Ok(Self::Etcd),
            _ => wrong("storage.url (WC_STORAGE_URL) must begin with s3://, etcd:// or etcds://; see docs/stores.md"),
        }
    }
}

/// Where the registry is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Engine.
    pub backend: Backend,
    /// Directory of the local engine.
    pub local_path: PathBuf,
    /// `storage.stado.url`, when set.
    pub stado_url: Option<String>,
    /// `storage.stado.token_file`, when set.
    pub stado_token_file: Option<PathBuf>,
    /// `storage.stado.ca_file`, when set.
    pub stado_ca_file: Option<PathBuf>,
    /// Where an engine that hosts share is, and who this host is to it.
    pub engine: super::engines::EngineSettings,
}

impl FleetFile {
    /// Finds and reads the file: `$STADO_CONFIG` (set and missing: no file at all), `./stado.config.json`,
    /// `~/.config/stado/config.json`, `~/.stado/config.json`.
    pub fn find(env: &Env) -> Result<Self, ConfigError> {
        if let Some(path) = env.path("STADO_CONFIG") {
            return Ok(Self::read(&path)?.unwrap_or_default());
        }
        let mut places = vec![PathBuf::from("stado.config.json")];
        if let Ok(home) = env.home() {
            places.push(home.join(".config/stado/config.json"));
            places.push(home.join(".stado/config.json"));
        }
        for place in &places {
            if let Some(file) = Self::read(place)? {
                return Ok(file);
            }
        }
        Ok(Self::default())
    }

    /// Reads one file; `None` when it is not there.
    pub fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        let invalid = |e: String| ConfigError(format!("invalid stado config file {}: {e}", path.display()));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound || e.kind() == std::io::ErrorKind::NotADirectory => {
                return Ok(None);
            }
            Err(e) => return Err(invalid(e.to_string())),
        };
        match serde_json::from_str(&text).map_err(|e| invalid(e.to_string()))? {
            Value::Object(root) => Ok(Some(Self { path: Some(path.to_owned()), root })),
            _ => wrong(format!("stado config file {} must contain a JSON object", path.display())),
        }
    }

    /// A value by its dotted key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let first = parts.next().and_then(|part| self.root.get(part));
        parts.fold(first, |value, part| value.and_then(|v| v.get(part)))
    }

    /// A text by its dotted key; null and the empty text count as absent.
    pub fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.value(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => wrong(format!("{key} in {} must be a string", self.place())),
        }
    }

    /// Where the file is that [`FleetFile::find`] reads, or would read if somebody wrote it.
    pub fn home_of(&self, env: &Env) -> Result<PathBuf, ConfigError> {
        match (self.path.clone(), env.path("STADO_CONFIG")) {
            (Some(path), _) => Ok(path),
            (None, Some(path)) => Ok(path),
            (None, None) => Ok(env.home()?.join(".stado/config.json")),
        }
    }

    fn place(&self) -> String {
        self.path.as_deref().map_or_else(|| "the configuration".to_owned(), |path| path.display().to_string())
    }
}

impl Storage {
    /// Reads the storage settings.
    pub fn read(file: &FleetFile, env: &Env) -> Result<Self, ConfigError> {
        let setting = |variable: &str, key: &str| match env.text(variable)? {
            Some(value) => Ok(Some(value)),
            None => file.text(key),
        };
        let url = setting("WC_STORAGE_URL", "storage.url")?;
        let local = setting("WC_LOCAL_STORAGE_PATH", "storage.local.path")?;
        let backend = match setting("WC_STORAGE_BACKEND", "storage.backend")? {
            Some(word) => Backend::parse(word.trim())?,
            None => url.as_deref().map_or(Ok(Backend::Local), Backend::of_url)?,
        };
        let local_path = match &local {
            Some(path) => env.expand(path)?,
            None if backend == Backend::Local => env.home()?.join(".stado/local-storage"),
            None => PathBuf::new(),
        };
        let file_setting =
            |variable: &str, key: &str| setting(variable, key)?.map(|path| env.expand(&path)).transpose();
        Ok(Self {
            backend,
            local_path,
            stado_url: setting("WC_STADO_STORAGE_URL", "storage.stado.url")?,
            stado_token_file: file_setting("WC_STADO_STORAGE_TOKEN_FILE", "storage.stado.token_file")?,
            stado_ca_file: file_setting("WC_STADO_STORAGE_CA_FILE", "storage.stado.ca_file")?,
            engine: super::engines::EngineSettings::read(file, env, url)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().to_str().unwrap().to_owned();
        (dir, text)
    }
    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_named_file_that_is_missing_means_no_file() {
        let (dir, home) = home();
        write(&dir.path().join(".stado/config.json"), r#"{"storage":{"local":{"path":"/elsewhere"}}}"#);
        let env = Env::of([("HOME", &home), ("STADO_CONFIG", "/nonexistent/x.json")]);
        assert!(FleetFile::find(&env).unwrap().path.is_none());
        let env = Env::of([("HOME", &home)]);
        assert_eq!(FleetFile::find(&env).unwrap().text("storage.local.path").unwrap().as_deref(), Some("/elsewhere"));
    }

    #[test]
    fn the_users_configuration_comes_before_the_home_of_stado() {
        let (dir, home) = home();
        write(&dir.path().join(".stado/config.json"), r#"{"storage":{"backend":"s3"}}"#);
        write(&dir.path().join(".config/stado/config.json"), r#"{"storage":{"backend":"gcs"}}"#);
        let env = Env::of([("HOME", &home)]);
        let storage = Storage::read(&FleetFile::find(&env).unwrap(), &env).unwrap();
        assert_eq!(storage.backend, Backend::Gcs);
    }

    #[test]
    fn the_environment_wins_and_local_is_the_default() {
        let (_dir, home) = home();
        let env = Env::of([("HOME", &home)]);
        let storage = Storage::read(&FleetFile::default(), &env).unwrap();
        assert_eq!(storage.backend, Backend::Local);
        assert_eq!(storage.local_path, Path::new(&home).join(".stado/local-storage"));
        let env = Env::of([
            ("HOME", &home),
            ("WC_STORAGE_BACKEND", "stado-object"),
            ("WC_STADO_STORAGE_URL", "http://127.0.0.1:1"),
        ]);
        let storage = Storage::read(&FleetFile::default(), &env).unwrap();
        assert_eq!(storage.backend, Backend::Stado);
        assert_eq!(storage.stado_url.as_deref(), Some("http://127.0.0.1:1"));
    }

    #[test]
    fn a_malformed_file_is_named() {
        let (dir, _) = home();
        let path = dir.path().join("c.json");
        write(&path, "{");
        assert!(
            FleetFile::read(&path)
                .unwrap_err()
                .0
                .starts_with(&format!("invalid stado config file {}: ", path.display()))
        );
        write(&path, "[]");
        assert_eq!(
            FleetFile::read(&path).unwrap_err().0,
            format!("stado config file {} must contain a JSON object", path.display())
        );
    }
}
