//! Key files and the certificates beside them: which can be offered, and why the others cannot.
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::public::{KeyData, PublicKey};
use russh::keys::{Certificate, PrivateKey, decode_secret_key};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A key file that can be offered.
#[derive(Debug)]
pub(super) struct FileKey {
    pub(super) file: PathBuf,
    pub(super) key: Arc<PrivateKey>,
    /// From `<file>-cert.pub`, when it is there and usable.
    pub(super) certificate: Option<Certificate>,
}

/// What the declared files gave.
#[derive(Debug, Default)]
pub(super) struct FileKeys {
    pub(super) usable: Vec<FileKey>,
    /// Why the others are not offered, one sentence each.
    pub(super) skipped: Vec<String>,
    /// Those that are not there, which is worth a word only when nothing else can be offered.
    pub(super) missing: Vec<String>,
}

/// Reads the files in their order.
pub(super) async fn read(files: &[PathBuf], now: u64) -> FileKeys {
    let mut keys = FileKeys::default();
    for file in files {
        match private_key(file).await {
            Ok(None) => keys.missing.push(format!("{} is not there", file.display())),
            Err(why) => keys.skipped.push(format!("{} {why}", file.display())),
            Ok(Some(key)) => {
                let certificate = match certificate(file, &key, now).await {
                    Ok(certificate) => certificate,
                    Err(why) => {
                        keys.skipped.push(why);
                        None
                    }
                };
                keys.usable.push(FileKey { file: file.clone(), key: Arc::new(key), certificate });
            }
        }
    }
    keys
}

/// The public parts of key files, from the `.pub` file beside each: they are known of encrypted keys too.
pub(super) async fn public(files: &[PathBuf]) -> Vec<KeyData> {
    let mut keys = Vec::new();
    for file in files {
        let mut path = file.as_os_str().to_owned();
        path.push(".pub");
        let Ok(text) = tokio::fs::read_to_string(path).await else { continue };
        keys.extend(PublicKey::from_openssh(text.trim()).map(|key| key.key_data().clone()));
    }
    keys
}

async fn private_key(file: &Path) -> Result<Option<PrivateKey>, String> {
    let metadata = match tokio::fs::metadata(file).await {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if let Some(why) = too_open(&metadata, file) {
        return Err(why);
    }
    let text = tokio::fs::read_to_string(file).await.map_err(|error| format!("cannot be read: {error}"))?;
    match decode_secret_key(&text, None) {
        Ok(key) => Ok(Some(key)),
        Err(russh::keys::Error::KeyIsEncrypted) => {
            Err("is encrypted and no one can be asked for its passphrase; `ssh-add` it to the agent".into())
        }
        Err(error) if text.contains("ENCRYPTED") => {
            Err(format!("is encrypted and no one can be asked for its passphrase; `ssh-add` it to the agent ({error})"))
        }
        Err(error) => Err(format!("is no usable private key: {error}")),
    }
}

#[cfg(unix)]
fn too_open(metadata: &std::fs::Metadata, file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0)
        .then(|| format!("is open to others (mode {mode:04o}) and is not used; `chmod 600 {}`", file.display()))
}
#[cfg(not(unix))]
fn too_open(_: &std::fs::Metadata, _: &Path) -> Option<String> {
    None
}

async fn certificate(file: &Path, key: &PrivateKey, now: u64) -> Result<Option<Certificate>, String> {
    let mut path = file.as_os_str().to_owned();
    path.push("-cert.pub");
    let path = PathBuf::from(path);
    let text = match tokio::fs::read_to_string(&path).await {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let refuse = |why: &str| Err(format!("{} {why}", path.display()));
    let Ok(certificate) = Certificate::from_openssh(text.trim()) else { return refuse("is no certificate") };
    if certificate.cert_type() != CertType::User {
        return refuse("is not a user certificate");
    }
    if certificate.public_key() != key.public_key().key_data() {
        return refuse("is for another key");
    }
    if now < certificate.valid_after() || now >= certificate.valid_before() {
        return refuse("is expired or not yet valid");
    }
    Ok(Some(certificate))
}
