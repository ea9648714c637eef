//! Writes the key of a host down that was not listed: what `StrictHostKeyChecking accept-new` asks for.
use russh::keys::PublicKey;
use std::io::{self, Write};
use std::path::Path;

/// Adds a line to `file`, which is made when it is missing (0600, its directory 0700).
pub(in crate::link) fn remember(file: &Path, host: &str, port: u16, key: &PublicKey) -> io::Result<()> {
    let name = host.to_ascii_lowercase();
    let listed = if port == 22 { name } else { format!("[{name}]:{port}") };
    let key = key.to_openssh().map_err(io::Error::other)?;
    // Without the comment, which is whatever the host says.
    let key = key.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if let Some(directory) = file.parent().filter(|directory| !directory.exists()) {
        private(std::fs::DirBuilder::new().recursive(true)).create(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    // One write: two connections may add at once.
    file.write_all(format!("{listed} {key}\n").as_bytes())?;
    file.sync_all()
}

#[cfg(unix)]
fn private(builder: &mut std::fs::DirBuilder) -> &mut std::fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    builder.mode(0o700)
}
#[cfg(not(unix))]
fn private(builder: &mut std::fs::DirBuilder) -> &mut std::fs::DirBuilder {
    builder
}
