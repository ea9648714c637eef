//! Speaks to the manager through its own program.
use super::place::{LABEL, Place, SERVICE};
use crate::args::ServiceManager;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// What came of it.
pub(super) enum Told {
    /// It did what it was asked.
    Done,
    /// None runs on this machine, or none for this account.
    NoManager,
    /// It refused; its own words.
    Refused(String),
}

/// Whether one may run on this machine.
pub(super) fn is_there() -> bool {
    cfg!(target_os = "macos") || Path::new("/run/systemd/system").is_dir()
}

/// Lets it run the unit from now on; `now`: also start it.
pub(super) async fn enable(place: &Place, now: bool) -> Told {
    match place.manager {
        ServiceManager::Systemd => {
            let enable: &[&str] = if now { &["enable", "--now", SERVICE] } else { &["enable", SERVICE] };
            match systemctl(place, &["daemon-reload"]).await {
                Told::Done => systemctl(place, enable).await,
                other => other,
            }
        }
        // A job begins as soon as it is known.
        ServiceManager::Launchd if !now => Told::Done,
        ServiceManager::Launchd => {
            // One that is known already is taken out first; that it was not known is no refusal.
            let _ = launchctl(&["bootout", &format!("{}/{LABEL}", place.domain())]).await;
            launchctl(&["bootstrap", &place.domain(), &place.file.to_string_lossy()]).await
        }
    }
}

/// Ends the daemon, and starts it no more.
pub(super) async fn disable(place: &Place) -> Told {
    match place.manager {
        ServiceManager::Systemd => systemctl(place, &["disable", "--now", SERVICE]).await,
        ServiceManager::Launchd => {
            let _ = launchctl(&["bootout", &format!("{}/{LABEL}", place.domain())]).await;
            Told::Done
        }
    }
}

/// Lets it see that the unit is gone.
pub(super) async fn forget(place: &Place) -> Told {
    match place.manager {
        ServiceManager::Systemd => match systemctl(place, &["daemon-reload"]).await {
            // That was said before.
            Told::NoManager => Told::Done,
            other => other,
        },
        ServiceManager::Launchd => Told::Done,
    }
}

async fn systemctl(place: &Place, args: &[&str]) -> Told {
    let scope: &[&str] = if place.system { &[] } else { &["--user"] };
    match run("systemctl", &[scope, args].concat()).await {
        // Its words differ between versions; whether it was started as the machine's manager shows in this directory.
        Told::Refused(_) if !Path::new("/run/systemd/system").is_dir() => Told::NoManager,
        told => told,
    }
}

async fn launchctl(args: &[&str]) -> Told {
    run("launchctl", args).await
}

async fn run(program: &str, args: &[&str]) -> Told {
    let output = Command::new(program).args(args).stdin(Stdio::null()).kill_on_drop(true).output().await;
    match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Told::NoManager,
        Err(error) => Told::Refused(format!("cannot run {program}: {error}")),
        Ok(output) if output.status.success() => Told::Done,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Told::Refused(format!("`{program} {}` ended with {}: {said}", args.join(" "), output.status))
        }
    }
}
