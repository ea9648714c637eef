//! The programs that own the stores.
use crate::config::Env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Finds and runs them.
pub(super) struct Tools {
    path: OsString,
    java_home: Option<PathBuf>,
}

impl Tools {
    pub(super) fn new(env: &Env) -> Self {
        Self { path: env.raw("PATH").unwrap_or_default().to_owned(), java_home: env.path("JAVA_HOME") }
    }

    /// A program on the PATH, or where administrators have theirs.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        std::env::split_paths(&self.path).chain(more).map(|dir| dir.join(name)).find(|file| file.is_file())
    }

    /// `keytool` of `JAVA_HOME`, else on the PATH.
    pub(super) fn keytool(&self) -> Option<PathBuf> {
        let home = self.java_home.as_ref().map(|home| home.join("bin/keytool")).filter(|file| file.is_file());
        home.or_else(|| self.find("keytool"))
    }
}

/// Runs to the end without a terminal; the error is the last line that it said.
pub(super) fn run<A: AsRef<OsStr>>(
    program: &std::path::Path,
    args: impl IntoIterator<Item = A>,
) -> Result<String, String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut command = Command::new(program);
    let output = command.args(args).stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    let line = last(&errors).or_else(|| last(&said)).unwrap_or_else(|| output.status.to_string());
    Err(format!("{name}: {line}"))
}
