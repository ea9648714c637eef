//! Opens an address in the browser of this desktop, where there is one.
use crate::config::Env;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;

/// What opens addresses here, or why nothing does.
pub(super) fn opener(env: &Env) -> Result<PathBuf, &'static str> {
    let name = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let shown = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(|name| env.raw(name).is_some());
    if !cfg!(target_os = "macos") && !shown {
        // It would start a browser of the terminal, in this one.
        return Err("no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set");
    }
    let dirs = env.raw("PATH").map(std::env::split_paths).into_iter().flatten();
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file()).ok_or(if cfg!(target_os = "macos") {
        "open is not on the PATH"
    } else {
        "xdg-open is not on the PATH; Debian has it in xdg-utils"
    })
}

/// Starts it; what is to be said of it in the end.
pub(super) async fn open(opener: PathBuf, address: String) -> String {
    let mut command = Command::new(&opener);
    command.arg(&address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser outlives this view, and its signals.
    command.process_group(0);
    match command.status().await {
        Ok(status) if status.success() => format!("opened {address}"),
        Ok(status) => format!("{address}: {} ended with {status}", opener.display()),
        Err(error) => format!("{address}: cannot run {}: {error}", opener.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn without_a_desktop_no_browser_is_started_in_the_terminal() {
        let path = [("PATH", "/nowhere")];
        assert!(opener(&Env::of(path)).unwrap_err().contains("DISPLAY"));
        let missing = opener(&Env::of([("PATH", "/nowhere"), ("DISPLAY", ":0")])).unwrap_err();
        assert!(missing.contains("xdg-utils"), "{missing}");
    }
}
