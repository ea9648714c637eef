//! The gate's own host key: read, or made on first start.
use super::GateError;
use russh::keys::PrivateKey;
use std::path::Path;

/// Reads the key at `file`; makes an ed25519 key there when nothing is (atomically: of two first starts one wins and
/// both use its key).
pub(super) fn read_or_make(file: &Path) -> Result<PrivateKey, GateError> {
    stado_fleet::join::read_or_make(file).map_err(|why| GateError::HostKey { file: file.to_owned(), why })
}
