//! Keys that are made once: a host's own, and the gate's.
use crate::disk;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey};
use std::path::Path;

/// Reads the key at `file`; makes an ed25519 key there when nothing is (0600, its directory 0700). Of two that make it at
/// once one wins and both use its key.
///
/// # Errors
/// What is wrong with the file, as the rest of a sentence that names it.
pub fn read_or_make(file: &Path) -> Result<PrivateKey, String> {
    if !file.exists() {
        let made = |error: &dyn std::fmt::Display| format!("cannot be made: {error}");
        let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).map_err(|e| made(&e))?;
        let text = key.to_openssh(LineEnding::LF).map_err(|e| made(&e))?;
        if let Some(directory) = file.parent() {
            disk::private_dir(directory).map_err(|error| error.to_string())?;
        }
        disk::create_new(file, text.as_bytes()).map_err(|error| error.to_string())?;
    }
    private(file)?;
    let bytes = disk::read(file, 64 * 1024).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|_| "is no private key".to_owned())?;
    russh::keys::decode_secret_key(&text, None).map_err(|error| {
        format!("is no usable private key ({error}); move it away and a new one is made, which others must then learn")
    })
}

/// The public half as `type base64`, without a comment.
pub fn public_key(key: &PrivateKey) -> String {
    // A key that was read or made can be written.
    PublicKey::from(key.public_key().key_data().clone()).to_openssh().unwrap_or_default()
}

/// `SHA256:…` of a public key line.
pub fn fingerprint(line: &str) -> Option<String> {
    let key = PublicKey::from_openssh(line).ok()?;
    Some(key.fingerprint(russh::keys::HashAlg::Sha256).to_string())
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
