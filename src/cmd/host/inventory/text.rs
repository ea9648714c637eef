//! The report for people. Everything in it is sanitized already.
use super::report::{Binary, Forward, Reconciliation, Report};
use std::fmt::{Display, Formatter, Result};

const NONE: &str = "-";

fn or_none(text: Option<&String>) -> &str {
    text.map_or(NONE, String::as_str)
}

/// A word of a verdict, as it is in JSON.
fn word(verdict: impl serde::Serialize) -> String {
    match serde_json::to_value(verdict) {
        Ok(serde_json::Value::String(word)) => word,
        _ => NONE.to_owned(),
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let over = self
            .ssh
            .as_ref()
            .map_or("this host itself".to_owned(), |ssh| format!("{ssh} ({})", or_none(self.path.as_ref())));
        writeln!(f, "{} over {over}, hostname {}", self.target, or_none(self.hostname.as_ref()))?;
        writeln!(
            f,
            "platform {}, declared {}: {}",
            or_none(self.release_platform.as_ref()),
            or_none(self.declared_release_platform.as_ref()),
            self.release_platform_verdict
        )?;
        match &self.resolver {
            Some(resolver) => writeln!(
                f,
                "resolver pid {} published {} at {}, directory generation {}, {} unserved",
                resolver.pid,
                resolver.state,
                resolver.updated_at,
                resolver.generation.map_or(NONE.to_owned(), |generation| generation.to_string()),
                resolver.unserved
            )?,
            None => writeln!(f, "resolver has published nothing")?,
        }
        let (dir, state) = (or_none(self.forwards_dir.as_ref()), or_none(self.forwards_dir_state.as_ref()));
        writeln!(f, "markers in {dir} ({state}):")?;
        self.forwards.iter().try_for_each(|forward| write!(f, "{forward}"))?;
        for service in &self.reconciliation.missing_markers {
            writeln!(f, "  {service}: declared, and there is no marker")?;
        }
        writeln!(f, "listening sockets ({}): {}", self.listeners_state, self.listeners.len())?;
        for listener in &self.listeners {
            let pid = listener.pid.map_or(String::new(), |pid| format!("  pid {pid}"));
            writeln!(f, "  {} port {}{pid}", listener.address, listener.port)?;
        }
        writeln!(f, "binaries:")?;
        self.managed_binaries.iter().try_for_each(|binary| write!(f, "{binary}"))?;
        for vault in &self.vaults {
            let bytes = vault.bytes.map_or(String::new(), |bytes| format!(", {bytes} bytes"));
            writeln!(f, "vault {} ({}{bytes})", vault.path, vault.state)?;
        }
        write!(f, "{}", self.reconciliation)
    }
}

impl Display for Forward {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { file, state, url, reconciliation, declared_url, declaration_verdict, .. } = self;
        let said = url.clone().unwrap_or_else(|| format!("({state})"));
        let (socket, declared) = (word(reconciliation), word(declaration_verdict));
        let instead = declared_url.as_ref().filter(|_| declared == "disagrees");
        let instead = instead.map_or(String::new(), |url| format!(" (declared {url})"));
        writeln!(f, "  {file} -> {said}  socket {socket}, directory {declared}{instead}")
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { name, path, version, declared_version, verdict } = self;
        let declared = or_none(declared_version.as_ref());
        let (version, path) = (or_none(version.as_ref()), or_none(path.as_ref()));
        writeln!(f, "  {name} {version} at {path}, declared {declared}: {}", word(verdict))
    }
}

impl Display for Reconciliation {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let all = self;
        writeln!(
            f,
            "reconciliation: {} of {} forward markers matched, {} stale, {} unreadable, {} unjudged",
            all.matched, all.markers, all.stale, all.unreadable, all.unknown
        )?;
        writeln!(
            f,
            "declaration:    {} of {} forward markers agree with the registry, {} disagree, {} undeclared",
            all.declaration_matched, all.markers, all.declaration_disagrees, all.declaration_undeclared
        )?;
        let versions = [
            all.versions_matched,
            all.versions_behind,
            all.versions_ahead,
            all.versions_mismatched,
            all.versions_undeclared,
            all.versions_unknown,
        ];
        writeln!(
            f,
            "versions:       {} of {} binaries matched, {} behind, {} ahead, {} mismatched, {} undeclared, {} unknown",
            all.versions_matched,
            versions.iter().sum::<usize>(),
            all.versions_behind,
            all.versions_ahead,
            all.versions_mismatched,
            all.versions_undeclared,
            all.versions_unknown
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_contracts_words() {
        let all = Reconciliation {
            markers: 11,
            matched: 3,
            stale: 2,
            unreadable: 1,
            unknown: 5,
            declaration_matched: 3,
            declaration_disagrees: 1,
            declaration_undeclared: 7,
            versions_behind: 1,
            ..Reconciliation::default()
        };
        assert_eq!(
            all.to_string(),
            "reconciliation: 3 of 11 forward markers matched, 2 stale, 1 unreadable, 5 unjudged\n\
             declaration:    3 of 11 forward markers agree with the registry, 1 disagree, 7 undeclared\n\
             versions:       0 of 1 binaries matched, 1 behind, 0 ahead, 0 mismatched, 0 undeclared, 0 unknown\n"
        );
    }
}
