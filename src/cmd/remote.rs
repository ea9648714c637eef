//! A host of the registry and its channel for commands: over every declared path in order, or this host's own shell.
mod local;

use super::fleet::Fleet;
use super::observations::{Observation, Observations, host_fact};
use crate::exit::Failure;
use crate::ui;
use jiff::Timestamp;
use serde_json::Value;
use stado_fleet::document::{Document, Registry};
use stado_fleet::ledger::{self, Wait};
use stado_fleet::link::{ExecLimits, ExecOutput};
use stado_fleet::name::{ConnectionPath, TargetName};
use std::time::Duration;

/// What carries a command that runs on this host itself.
pub(crate) const HERE: &str = "here";

/// One host, as commands reach it.
pub(crate) struct Remote<'f> {
    fleet: &'f Fleet,
    registry: &'f Registry,
    /// Its name.
    pub(crate) name: TargetName,
    /// Its declared paths, in the order in which they are tried.
    pub(crate) paths: &'f [ConnectionPath],
    /// Whether it is this host: no path is needed then.
    pub(crate) here: bool,
}

impl<'f> Remote<'f> {
    /// Finds a host in the registry. One that is neither this host nor has a path is refused.
    pub(crate) fn of(fleet: &'f Fleet, registry: &'f Registry, name: &str) -> Result<Self, Failure> {
        let found = name.parse::<TargetName>().ok().and_then(|name| registry.targets.get_key_value(&name));
        let Some((name, target)) = found else {
            return Err(Failure::not_found(format!("target '{name}' is not in the canonical registry")));
        };
        let here = fleet.is_here(registry, name)?;
        Ok(Self { fleet, registry, name: name.clone(), paths: &target.paths, here })
    }

    /// Refuses a host that nobody can reach.
    pub(crate) fn reachable(&self) -> Result<(), Failure> {
        if self.here || !self.paths.is_empty() {
            return Ok(());
        }
        let Self { name, .. } = self;
        Err(Failure::config(format!(
            "target '{name}' declares no SSH connection path; declare one with `stado registry host path set {name} primary \
             --ssh [USER@]HOST[:PORT]`"
        )))
    }

    /// Runs a shell line there. Output past the limit ends the command ([`ExecOutput::cut`]). Whether the host was reached is
    /// recorded.
    pub(crate) async fn run(&self, line: &str, stdin: &[u8], limits: ExecLimits) -> Result<ExecOutput, Failure> {
        if self.here {
            return self.exec(line, stdin, limits).await;
        }
        self.reachable()?;
        self.say_waits();
        let ran = self.exec(line, stdin, limits).await;
        match &ran {
            Ok(output) => self.record("observed", format!("ran a command over {}", output.path)),
            Err(failure) => self.record("unreachable", failure.message.clone()),
        }
        ran
    }

    /// As [`Remote::run`], without a word: for one of many commands of the same verb.
    pub(crate) async fn exec(&self, line: &str, stdin: &[u8], limits: ExecLimits) -> Result<ExecOutput, Failure> {
        if self.here {
            let home = self.fleet.host.stado_home.parent();
            return local::run((self.name.as_str(), home), line, stdin, limits).await;
        }
        self.reachable()?;
        Ok(self.fleet.link.exec_cut(&self.name, self.paths, line, stdin, limits).await?)
    }

    /// The destination of a path, as declared; `None` for this host itself.
    pub(crate) fn destination(&self, path: &str) -> Option<String> {
        let path = self.paths.iter().find(|declared| declared.name == path)?;
        Some(path.destination.to_string())
    }

    /// Says which connections to this host stand unanswered: the host is asked all the same, over every declared path.
    pub(crate) fn say_waits(&self) {
        match ledger::waits(&self.fleet.host.published) {
            Err(sentence) => ui::note(sentence),
            Ok(waits) => {
                let alive = self.fleet.publisher().is_ok_and(|publisher| publisher.alive().is_some());
                let waits = waits.filter(|_| alive).unwrap_or_default();
                for sentence in held(&waits, &self.name, Timestamp::now(), self.refresh()) {
                    ui::note(format_args!("{sentence}; asking {} over every declared path", self.name));
                }
            }
        }
    }

    /// The interval that this host declares.
    fn refresh(&self) -> Duration {
        let me = self.fleet.me(self.registry).ok().flatten();
        let policy = me.and_then(|me| self.registry.targets.get(&me)?.resolver.as_ref());
        Duration::from_secs(policy.map_or(0, |policy| policy.refresh_seconds))
    }

    /// Records what was seen of the host.
    pub(crate) fn record(&self, state: &str, detail: String) {
        let row = Observation::seen(host_fact(self.name.as_str()), &self.vantage(), state, detail, Timestamp::now());
        Observations::record(&self.fleet.host.stado_home, vec![row]);
    }

    /// Who looks: this host by its name in the registry, else by its hostname.
    pub(crate) fn vantage(&self) -> String {
        let me = self.fleet.me(self.registry).ok().flatten();
        me.map_or_else(|| self.fleet.host.hostname.clone(), |me| me.to_string())
    }
}

/// The sentences of the waits on services of one host that are longer than the interval, by route.
fn held(waits: &[Wait], host: &TargetName, now: Timestamp, refresh: Duration) -> Vec<String> {
    let theirs: Vec<Wait> = waits.iter().filter(|wait| wait.active_host == host.as_str()).cloned().collect();
    ledger::blockers(&theirs, now, refresh)
}

/// A target as the document has it.
pub(crate) fn entry<'d>(document: &'d Document, target: &TargetName) -> Option<&'d Value> {
    let targets = document.section("targets")?.as_array()?;
    targets.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(target.as_str()))
}

/// A word for a POSIX shell, in single quotes.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_on_the_hosts_own_services_are_told() {
        let now: Timestamp = "2026-10-20T10:00:10Z".parse().unwrap();
        let wait = |host: &str, since: &str| Wait {
            service: "web".into(),
            consumer: "shop".into(),
            bind: "127.0.0.1:1".into(),
            active_host: host.into(),
            endpoint: "127.0.0.1:80".into(),
            since: since.into(),
            phase: "open".into(),
            ..Wait::default()
        };
        let waits = [
            wait("worker", "2026-10-20T10:00:00Z"),
            wait("worker", "2026-10-20T10:00:01Z"),
            wait("worker", "2026-10-20T10:00:09Z"),
            wait("control", "2026-10-20T10:00:00Z"),
        ];
        let host: TargetName = "worker".parse().unwrap();
        let told = held(&waits, &host, now, Duration::from_secs(5));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("2 connections on one route, the oldest: service web for consumer shop"),
            "{told:?}"
        );
        assert!(held(&waits, &host, now, Duration::from_secs(60)).is_empty());
    }

    #[test]
    fn words_reach_the_shell_whole() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's; rm"), r"'it'\''s; rm'");
    }
}
