//! Which manager, where its unit is, and how it is spoken of.
use super::{Unit, launchd, systemd};
use crate::args::{InstallArgs, ManagerArgs, ServiceManager};
use crate::config::Env;
use crate::exit::Failure;
use std::path::{Path, PathBuf};

/// Name of the unit under systemd.
pub(super) const SERVICE: &str = "stado-resolver.service";
/// Name of the job under launchd.
pub(super) const LABEL: &str = "local.stado-resolver";

/// Where a unit goes.
pub(super) struct Place {
    pub(super) manager: ServiceManager,
    pub(super) system: bool,
    pub(super) file: PathBuf,
}

impl Place {
    pub(super) fn find(args: &ManagerArgs, env: &Env) -> Result<Self, Failure> {
        let own = if cfg!(target_os = "macos") { ServiceManager::Launchd } else { ServiceManager::Systemd };
        let manager = args.manager.unwrap_or(own);
        let file = match (manager, args.system) {
            (ServiceManager::Systemd, true) => Path::new("/etc/systemd/system").join(SERVICE),
            (ServiceManager::Systemd, false) => env.config_dir()?.join("systemd/user").join(SERVICE),
            (ServiceManager::Launchd, true) => PathBuf::from(format!("/Library/LaunchDaemons/{LABEL}.plist")),
            (ServiceManager::Launchd, false) => env.home()?.join(format!("Library/LaunchAgents/{LABEL}.plist")),
        };
        Ok(Self { manager, system: args.system, file })
    }

    pub(super) fn text(&self, unit: &Unit) -> Result<String, Failure> {
        match self.manager {
            ServiceManager::Systemd => systemd::text(unit),
            ServiceManager::Launchd => launchd::text(unit),
        }
    }

    pub(super) fn manager_name(&self) -> &'static str {
        match self.manager {
            ServiceManager::Systemd => "systemd",
            ServiceManager::Launchd => "launchd",
        }
    }

    /// Domain of launchd that the job is in.
    pub(super) fn domain(&self) -> String {
        if self.system { "system".into() } else { format!("gui/{}", rustix::process::getuid().as_raw()) }
    }

    /// The command that starts it, as a part of a sentence.
    pub(super) fn start(&self) -> String {
        match (self.manager, self.system) {
            (ServiceManager::Systemd, true) => format!("`systemctl enable --now {SERVICE}` starts it"),
            (ServiceManager::Systemd, false) => format!("`systemctl --user enable --now {SERVICE}` starts it"),
            (ServiceManager::Launchd, _) => {
                format!("`launchctl bootstrap {} {}` starts it", self.domain(), self.file.display())
            }
        }
    }

    /// The command that puts a changed unit in force.
    pub(super) fn restart(&self) -> String {
        match (self.manager, self.system) {
            (ServiceManager::Systemd, true) => format!("`systemctl restart {SERVICE}`"),
            (ServiceManager::Systemd, false) => format!("`systemctl --user restart {SERVICE}`"),
            (ServiceManager::Launchd, _) => format!("`launchctl kickstart -k {}/{LABEL}`", self.domain()),
        }
    }

    /// What a person may not expect of it.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match (self.manager, self.system) {
            (ServiceManager::Systemd, false) => {
                Some("it runs while you are logged in; `loginctl enable-linger` lets it run from boot on")
            }
            _ => None,
        }
    }
}

/// Whose daemon a unit of the machine's manager runs.
pub(super) fn account(args: &InstallArgs, env: &Env) -> Result<String, Failure> {
    let said = args.run_as.clone().map_or_else(|| env.text("SUDO_USER"), |name| Ok(Some(name)))?;
    said.ok_or_else(|| {
        Failure::usage("--system: say with --run-as ACCOUNT whose home, keys and services the daemon has")
    })
}

/// The home of an account, as the system knows it.
pub(super) fn home_of(account: &str) -> Result<PathBuf, Failure> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    match home_in(&passwd, account).or_else(|| home_in(&asked(account).unwrap_or_default(), account)) {
        Some(home) => Ok(home),
        None => Err(Failure::usage(format!("--run-as {account}: this machine knows no such account"))),
    }
}

/// Accounts that are not in the file: of a directory service.
fn asked(account: &str) -> Option<String> {
    let output = std::process::Command::new("getent").args(["passwd", "--", account]).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

fn home_in(passwd: &str, account: &str) -> Option<PathBuf> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(account))?;
    line.split(':').nth(5).filter(|home| home.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(system: bool, manager: ServiceManager) -> Place {
        let env = Env::of([("HOME", "/h"), ("XDG_CONFIG_HOME", "")]);
        Place::find(&ManagerArgs { system, manager: Some(manager) }, &env).unwrap()
    }

    #[test]
    fn units_are_where_their_manager_reads_them() {
        let file = |system, manager| place(system, manager).file.display().to_string();
        let (systemd, launchd) = (ServiceManager::Systemd, ServiceManager::Launchd);
        assert_eq!(file(true, systemd), "/etc/systemd/system/stado-resolver.service");
        assert_eq!(file(true, launchd), "/Library/LaunchDaemons/local.stado-resolver.plist");
        assert_eq!(file(false, launchd), "/h/Library/LaunchAgents/local.stado-resolver.plist");
        if cfg!(not(target_os = "macos")) {
            assert_eq!(file(false, systemd), "/h/.config/systemd/user/stado-resolver.service");
        }
        assert!(place(true, systemd).start().starts_with("`systemctl enable"));
    }

    #[test]
    fn an_account_has_a_home_or_is_refused() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nodd:x\n";
        assert_eq!(home_in(passwd, "ann").unwrap(), Path::new("/home/ann"));
        assert_eq!((home_in(passwd, "an"), home_in(passwd, "odd")), (None, None));
        let sudo = Env::of([("SUDO_USER", "ann")]);
        assert_eq!(account(&InstallArgs::default(), &sudo).unwrap(), "ann");
        assert!(account(&InstallArgs::default(), &Env::of([])).unwrap_err().message.contains("--run-as"));
        assert!(home_of("nobody-of-that-name").unwrap_err().message.contains("no such account"));
    }
}
