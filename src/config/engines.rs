//! Stores that hosts share, S3 and etcd: where they are, and who this host is to them. Secrets come from owner-only files and
//! from the variables that other tools of these engines read; never from a URL, which is shown.
use super::{ConfigError, Env, FleetFile};
use stado_fleet::store::RegistryStore;
use stado_fleet::store::etcd::{EtcdConfig, EtcdStore, Login};
use stado_fleet::store::history::Writer;
use stado_fleet::store::http::Secret;
use stado_fleet::store::s3::{Keys, S3Config, S3Store};
use std::path::PathBuf;
use std::sync::Arc;

/// `storage.url`, `storage.s3`, `storage.etcd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// `storage.url`.
    url: Option<String>,
    bucket: Option<String>,
    region: Option<String>,
    s3_ca_file: Option<PathBuf>,
    keys: Keys,
    etcd_ca_file: Option<PathBuf>,
    etcd_certificate: Option<(PathBuf, PathBuf)>,
    login: Option<Login>,
}

impl EngineSettings {
    /// Reads the settings; `url` is `storage.url`.
    pub(super) fn read(file: &FleetFile, env: &Env, url: Option<String>) -> Result<Self, ConfigError> {
        let setting = |variable: &str, key: &str| match env.text(variable)? {
            Some(value) => Ok(Some(value)),
            None => file.text(key),
        };
        let path = |variable: &str, key: &str| setting(variable, key)?.map(|path| env.expand(&path)).transpose();
        let certificate = path("WC_ETCD_CERT_FILE", "storage.etcd.cert_file")?;
        let key = path("WC_ETCD_KEY_FILE", "storage.etcd.key_file")?;
        Ok(Self {
            url,
            bucket: setting("WC_S3_BUCKET", "storage.s3.bucket")?,
            region: setting("WC_S3_REGION", "storage.s3.region")?,
            s3_ca_file: path("WC_S3_CA_FILE", "storage.s3.ca_file")?,
            keys: keys(env, path("WC_S3_CREDENTIALS_FILE", "storage.s3.credentials_file")?)?,
            etcd_ca_file: path("WC_ETCD_CA_FILE", "storage.etcd.ca_file")?,
            etcd_certificate: certificate.zip(key),
            login: login(env, path("WC_ETCD_CREDENTIALS_FILE", "storage.etcd.credentials_file")?)?,
        })
    }

    /// The bucket that is configured.
    pub(super) fn s3(&self, writer: Writer) -> Result<Arc<dyn RegistryStore>, String> {
        let url = match (&self.url, &self.bucket) {
            (Some(url), _) => url.clone(),
            (None, Some(bucket)) => {
                let region = self.region.as_deref().map(|region| format!("?region={region}")).unwrap_or_default();
                format!("s3://{bucket}{region}")
            }
            (None, None) => {
                return Err("storage.backend is s3, and neither storage.url (s3://bucket/prefix?endpoint=…) nor \
                            storage.s3.bucket says which bucket"
                    .into());
            }
        };
        let config = S3Config::parse(&url, self.s3_ca_file.clone())?;
        let store = S3Store::new(&config, self.keys.clone()).map_err(|e| e.sentence)?;
        Ok(Arc::new(store.written_by(writer)))
    }

    /// The cluster that is configured.
    pub(super) fn etcd(&self, writer: Writer) -> Result<Arc<dyn RegistryStore>, String> {
        let url = self.url.as_deref().ok_or(
            "storage.backend is etcd, and storage.url (etcd://host:port,host:port/prefix) does not say which cluster",
        )?;
        let config = EtcdConfig::parse(url, self.etcd_ca_file.clone(), self.etcd_certificate.clone())?;
        Ok(Arc::new(EtcdStore::new(config, self.login.clone()).written_by(writer)))
    }
}

/// The configured file; else the variables; else the file that other tools read.
fn keys(env: &Env, file: Option<PathBuf>) -> Result<Keys, ConfigError> {
    let profile = env.text("AWS_PROFILE")?.unwrap_or_else(|| "default".to_owned());
    if let Some(path) = file {
        return Ok(Keys::File { path, profile, setting: "storage.s3.credentials_file" });
    }
    if let (Some(id), Some(secret)) = (env.text("AWS_ACCESS_KEY_ID")?, env.text("AWS_SECRET_ACCESS_KEY")?) {
        let token = env.text("AWS_SESSION_TOKEN")?.map(Secret::new);
        return Ok(Keys::Given { id, secret: Secret::new(secret), token });
    }
    let usual = match env.path("AWS_SHARED_CREDENTIALS_FILE") {
        Some(path) => Some(path),
        None => env.home().ok().map(|home| home.join(".aws/credentials")).filter(|path| path.exists()),
    };
    Ok(match usual {
        Some(path) => Keys::File { path, profile, setting: "the S3 credentials file" },
        None => Keys::Missing(
            "this host has no keys for it: name an owner-only file in storage.s3.credentials_file (as ~/.aws/credentials is \
             written), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                .to_owned(),
        ),
    })
}

/// The configured file; else `ETCDCTL_USER`, as `user:password` or beside `ETCDCTL_PASSWORD`; else nobody in particular.
fn login(env: &Env, file: Option<PathBuf>) -> Result<Option<Login>, ConfigError> {
    if let Some(path) = file {
        return Ok(Some(Login::File { path, setting: "storage.etcd.credentials_file" }));
    }
    let Some(user) = env.text("ETCDCTL_USER")? else { return Ok(None) };
    let (user, password) = match (env.text("ETCDCTL_PASSWORD")?, user.split_once(':')) {
        (Some(password), _) => (user, password),
        (None, Some((user, password))) => (user.to_owned(), password.to_owned()),
        (None, None) => {
            return super::wrong(
                "ETCDCTL_USER is set and ETCDCTL_PASSWORD is not; set it, or name an owner-only file in \
                                 storage.etcd.credentials_file",
            );
        }
    };
    Ok(Some(Login::Given { user, password: Secret::new(password) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Backend, HostConfig};

    fn host(settings: &str, pairs: &[(&str, &str)]) -> (tempfile::TempDir, HostConfig) {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".stado")).unwrap();
        std::fs::write(home.path().join(".stado/config.json"), settings).unwrap();
        let mut all = vec![("HOME", home.path().to_str().unwrap()), ("USER", "ann")];
        all.extend_from_slice(pairs);
        let all: [(&str, &str); 6] = std::array::from_fn(|i| all.get(i).copied().unwrap_or(("UNUSED", "")));
        let host = HostConfig::read(&Env::of(all), None).unwrap();
        (home, host)
    }

    fn location(settings: &str, pairs: &[(&str, &str)]) -> String {
        host(settings, pairs).1.open_store().unwrap().location()
    }

    #[test]
    fn a_url_names_the_engine_and_the_keys_of_the_contract_still_do() {
        let url = r#"{"storage":{"url":"s3://fleet/prod?endpoint=https://s3.example"}}"#;
        assert_eq!(location(url, &[]), "s3://fleet/prod/registry.json");
        assert_eq!(host(url, &[]).1.storage.backend, Backend::S3);
        let bucket = r#"{"storage":{"backend":"s3","s3":{"bucket":"fleet","region":"eu-1"}}}"#;
        assert_eq!(location(bucket, &[]), "s3://fleet/registry.json");
        assert_eq!(location("{}", &[("WC_STORAGE_URL", "etcd://127.0.0.1:2379/prod")]), "etcd:/prod/registry.json");
    }

    #[tokio::test]
    async fn an_engine_without_its_settings_says_which() {
        for (settings, why) in [
            (r#"{"storage":{"backend":"s3"}}"#, "neither storage.url (s3://"),
            (r#"{"storage":{"backend":"etcd"}}"#, "storage.url (etcd://"),
            (r#"{"storage":{"url":"s3://fleet"}}"#, "this host has no keys for it: name an owner-only file"),
            (r#"{"storage":{"backend":"etcd","url":"s3://fleet"}}"#, "it must be etcd://"),
        ] {
            let store = host(settings, &[]).1.open_store().unwrap();
            let error = store.read().await.unwrap_err().sentence;
            assert!(error.starts_with("registry store unreachable (") && error.contains(why), "{error}");
        }
        let env = Env::of([("HOME", "/h"), ("WC_STORAGE_URL", "ftp://x")]);
        assert!(
            super::super::Storage::read(&FleetFile::default(), &env).unwrap_err().0.contains("must begin with s3://")
        );
    }

    #[test]
    fn secrets_come_from_files_before_variables_and_show_themselves_nowhere() {
        let given = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
        let (_home, with_variables) = host("{}", &given);
        assert!(matches!(with_variables.storage.engine.keys, Keys::Given { .. }));
        let file = r#"{"storage":{"s3":{"credentials_file":"~/keys"},"etcd":{"credentials_file":"~/login"}}}"#;
        let (home, with_files) = host(file, &given);
        let Keys::File { path, .. } = &with_files.storage.engine.keys else { panic!() };
        assert_eq!(*path, home.path().join("keys"));
        assert!(matches!(with_files.storage.engine.login, Some(Login::File { .. })));
        let (_home, login) = host("{}", &[("ETCDCTL_USER", "root:hidden")]);
        assert!(matches!(&login.storage.engine.login, Some(Login::Given { user, .. }) if user == "root"));
        assert!(!format!("{with_variables:?} {login:?}").contains("hidden"));
    }
}
