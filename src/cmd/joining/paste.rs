//! The invitation as it is given: a file, a pipe, or a line that is pasted into a terminal and not shown there.
use crate::exit::Failure;
use crate::ui;
use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Far above any invitation.
const LONGEST: u64 = 64 << 10;

/// Reads it; empty when nothing was given.
pub(super) fn read(file: Option<&Path>) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(path) = file.filter(|path| *path != Path::new("-")) {
        let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
        read.map_err(|e| Failure::config(format!("cannot read the invitation {}: {e}", path.display())))?;
        return Ok(text);
    }
    let stdin = std::io::stdin();
    let failed = |e: std::io::Error| Failure::config(format!("cannot read the invitation from standard input: {e}"));
    if stdin.is_terminal() {
        ui::note("paste the invitation, then Enter (it is not shown):");
        let _quiet = Quiet::begin();
        stdin.lock().take(LONGEST).read_line(&mut text).map_err(failed)?;
    } else {
        stdin.lock().take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    }
    Ok(text)
}

/// What stands ready on standard input; `None` at a terminal, where nobody was asked, and when it is empty.
pub(super) fn piped() -> Result<Option<String>, Failure> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    Ok(Some(read(None)?).filter(|text| !text.trim().is_empty()))
}

/// A terminal that does not show what is typed, until dropped. One that cannot be told shows it.
struct Quiet;

impl Quiet {
    fn begin() -> Self {
        stty("-echo");
        Self
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        stty("echo");
    }
}

/// It acts on its standard input, which is ours.
fn stty(word: &str) {
    let _ = Command::new("stty").arg(word).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
