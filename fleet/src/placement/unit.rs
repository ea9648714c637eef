//! What runs a service on one host, as its profile says.
use super::PlacementError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Who starts and stops a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// `systemctl`, of the machine.
    Systemd,
    /// `systemctl --user`, of the account.
    SystemdUser,
    /// `launchctl`: a daemon of the machine, or an agent of the account.
    Launchd {
        /// Of the account.
        agent: bool,
    },
    /// Commands of a shell.
    Commands(Commands),
}

/// A unit of kind `command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// Returns when it has begun.
    pub start: String,
    /// Returns when it was told.
    pub stop: String,
    /// Succeeds while it runs.
    pub running: String,
    /// Lets it come up with the host.
    pub enable: Option<String>,
    /// The opposite.
    pub disable: Option<String>,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Service of the directory.
    pub service: String,
    /// Unit or label.
    pub unit: String,
    /// Its file; `None` where the manager finds it by name.
    pub path: Option<String>,
    /// Who runs it.
    pub manager: Manager,
}

/// `declaration.run` of a service: from it a unit file is written where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// Absolute path.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
}

impl Unit {
    /// Reads the unit of `service` on `host`.
    ///
    /// # Errors
    /// A kind that cannot be driven, or one that lacks what it needs.
    pub fn read(service: &str, host: &str, raw: &Value) -> Result<Self, PlacementError> {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        let wrong = |what: &str| Err(PlacementError::config(format!("the unit of {service} on {host} {what}")));
        if text("controller").is_some() {
            return wrong("is run by a release controller: move it with that");
        }
        let path = text("path");
        let within = |part: &str| path.is_some_and(|p| p.contains(part));
        let manager = match text("kind") {
            Some("systemd") if within("/systemd/user/") => Manager::SystemdUser,
            Some("systemd") => Manager::Systemd,
            Some("systemd-user") => Manager::SystemdUser,
            Some("launchd") => Manager::Launchd { agent: within("/LaunchAgents/") },
            Some("command") => match (text("start"), text("stop"), text("running")) {
                (Some(start), Some(stop), Some(running)) => Manager::Commands(Commands {
                    start: start.to_owned(),
                    stop: stop.to_owned(),
                    running: running.to_owned(),
                    enable: text("enable").map(str::to_owned),
                    disable: text("disable").map(str::to_owned),
                }),
                _ => return wrong("is of kind command and needs the commands start, stop and running"),
            },
            Some(other) => {
                return wrong(&format!("is of kind {other:?}; known are systemd, systemd-user, launchd and command"));
            }
            None => return wrong("names no kind; known are systemd, systemd-user, launchd and command"),
        };
        let Some(unit) = text("unit").or_else(|| text("name")) else { return wrong("has neither unit nor name") };
        // A name that begins with a dash would be read as an option.
        if unit.starts_with('-') || unit.contains(char::is_whitespace) {
            return wrong(&format!("is called {unit:?}, which no service manager takes"));
        }
        if matches!(manager, Manager::Launchd { .. }) && path.is_none() {
            return wrong("is of kind launchd and needs the path of its plist");
        }
        Ok(Self { service: service.to_owned(), unit: unit.to_owned(), path: path.map(str::to_owned), manager })
    }

    /// What the unit is called in sentences.
    pub fn told(&self) -> String {
        if self.unit == self.service { self.service.clone() } else { format!("{} ({})", self.service, self.unit) }
    }
}

impl Run {
    /// Reads `declaration.run` of a directory entry; `None` where it names no absolute program.
    pub fn read(entry: &Value) -> Option<Self> {
        let run = entry.get("declaration")?.get("run")?;
        let program = run.get("program")?.as_str().filter(|p| p.starts_with('/'))?;
        let args = run.get("args").and_then(Value::as_array).into_iter().flatten();
        let env = run.get("env").and_then(Value::as_object).into_iter().flatten();
        Some(Self {
            program: program.to_owned(),
            args: args.filter_map(|a| a.as_str().map(str::to_owned)).collect(),
            env: env.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(raw: Value) -> Result<Unit, String> {
        Unit::read("notes", "a", &raw).map_err(|e| e.sentence)
    }

    #[test]
    fn a_kind_and_a_place_say_who_runs_a_unit() {
        let manager = |raw: Value| read(raw).unwrap().manager;
        assert_eq!(manager(json!({"unit": "n.service", "kind": "systemd"})), Manager::Systemd);
        assert_eq!(manager(json!({"unit": "n.service", "kind": "systemd-user"})), Manager::SystemdUser);
        let user = json!({"unit": "n.service", "kind": "systemd", "path": "/home/ann/.config/systemd/user/n.service"});
        assert_eq!(manager(user), Manager::SystemdUser);
        let daemon = json!({"unit": "n", "kind": "launchd", "path": "/Library/LaunchDaemons/n.plist"});
        assert_eq!(manager(daemon), Manager::Launchd { agent: false });
        let agent = json!({"unit": "n", "kind": "launchd", "path": "/Users/ann/Library/LaunchAgents/n.plist"});
        assert_eq!(manager(agent), Manager::Launchd { agent: true });
    }

    #[test]
    fn what_cannot_be_driven_is_said() {
        let wrong = |raw: Value| read(raw).unwrap_err();
        assert_eq!(
            wrong(json!({"name": "n", "controller": "release-control", "product": "p"})),
            "the unit of notes on a is run by a release controller: move it with that"
        );
        assert_eq!(
            wrong(json!({"name": "n", "kind": "command", "start": "x"})),
            "the unit of notes on a is of kind command and needs the commands start, stop and running"
        );
        assert!(wrong(json!({"name": "n", "kind": "openrc"})).contains("known are systemd"));
        assert!(wrong(json!({"name": "n"})).contains("names no kind"));
        assert!(wrong(json!({"kind": "systemd"})).contains("neither unit nor name"));
        assert!(wrong(json!({"unit": "--now", "kind": "systemd"})).contains("no service manager takes"));
        assert!(wrong(json!({"unit": "n", "kind": "launchd"})).contains("path of its plist"));
    }

    #[test]
    fn a_declaration_is_read_when_it_names_a_program() {
        let run = json!({"declaration": {"run": {"program": "/opt/n", "args": ["-x"], "env": {"A": "b"}}}});
        let read = Run::read(&run).unwrap();
        assert_eq!(
            (read.program.as_str(), read.args.as_slice(), read.env["A"].as_str()),
            ("/opt/n", &["-x".to_owned()][..], "b")
        );
        assert_eq!(Run::read(&json!({"declaration": {"run": {"program": "n"}}})), None);
        assert_eq!(Run::read(&json!({})), None);
    }
}
