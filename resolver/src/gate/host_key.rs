//! The gate's own host key: read, or made on first start.
use super::GateError;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use stado_fleet::disk;
use std::path::Path;

/// Reads the key at `file`; makes an ed25519 key there when nothing is (atomically: of two first starts one wins and
/// both use its key).
pub(super) fn read_or_make(file: &Path) -> Result<PrivateKey, GateError> {
    let fail = |why: String| GateError::HostKey { file: file.to_owned(), why };
    if !file.exists() {
        let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519)
            .map_err(|error| fail(format!("cannot be made: {error}")))?;
        let text = key.to_openssh(LineEnding::LF).map_err(|error| fail(format!("cannot be made: {error}")))?;
        if let Some(directory) = file.parent() {
            disk::private_dir(directory).map_err(|error| fail(error.to_string()))?;
        }
        disk::create_new(file, text.as_bytes()).map_err(|error| fail(error.to_string()))?;
    }
    private(file).map_err(&fail)?;
    let bytes = disk::read(file, 64 * 1024).map_err(|error| fail(error.to_string()))?;
    let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|_| fail("is no private key".into()))?;
    russh::keys::decode_secret_key(&text, None).map_err(|error| {
        fail(format!(
            "is no usable private key ({error}); move it away and a new one is made, which clients must then learn"
        ))
    })
}

#[cfg(unix)]
fn private(file: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file).map_err(|error| error.to_string())?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(format!("is open to others (mode {mode:04o}); `chmod 600 {}`", file.display()))
}
#[cfg(not(unix))]
fn private(_: &Path) -> Result<(), String> {
    Ok(())
}
