//! From what a host said and what the registry declares to the report: pure.
use super::facts::{Fact, Facts};
use super::markers::{self, Found};
use super::report::{Binary, Forward, Reconciliation, Report, Resolver, Vault};
use super::sanitize::Sanitizer;
use super::sockets;
use super::versions;
use stado_fleet::document::Registry;
use stado_fleet::forwards;
use stado_fleet::ledger::ResolverState;
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;

/// What the registry says of the host.
#[derive(Debug)]
pub(super) struct Declaration<'a> {
    pub(super) registry: &'a Registry,
    pub(super) target: &'a TargetName,
    pub(super) release_platform: Option<String>,
    /// Binary to version.
    pub(super) versions: BTreeMap<String, String>,
}

/// Compares the two.
pub(super) fn report(facts: &Facts, declared: &Declaration<'_>) -> Report {
    let clean = Sanitizer::default();
    let optional = |fact: Option<&Fact>, at: usize| fact.map(|fact| clean.text(&fact.text(at)));
    let state = state(facts).ok().flatten();
    let table = sockets::table(facts);
    let urls = urls(declared, state.as_ref());
    let found = facts.all("forward").map(|fact| Found {
        file: fact.text(0),
        state: fact.text(1),
        content: fact.bytes(2).to_vec(),
    });
    let judged = found.map(|found| {
        let url = urls.get(found.file.rsplit_once('.').map_or("", |(service, _)| service)).cloned();
        Forward::of(markers::judge(found, table.as_deref(), url.as_deref()), &clean)
    });
    let forwards: Vec<Forward> = judged.collect();
    let marked = |service: &String| forwards.iter().any(|f| f.file == format!("{service}.local"));
    let missing = urls.keys().filter(|service| !marked(service)).cloned().collect();
    let binaries = binaries(facts, &declared.versions, &clean);
    let platform = facts.one("platform").map(|fact| platform(&fact.text(0), &fact.text(1)));
    let mut report = Report {
        target: declared.target.to_string(),
        hostname: optional(facts.one("host"), 0),
        release_platform_verdict: match (&platform, &declared.release_platform) {
            (Some(found), Some(wanted)) if found == wanted => "matched",
            (Some(_), Some(_)) => "mismatched",
            _ => "unknown",
        },
        release_platform: platform.map(|platform| clean.text(&platform)),
        declared_release_platform: declared.release_platform.clone(),
        forwards_dir_state: optional(facts.one("forwards_dir"), 0),
        forwards_dir: optional(facts.one("forwards_dir"), 1),
        reconciliation: Reconciliation::of(&forwards, &binaries, missing),
        managed_binaries: binaries,
        forwards,
        listeners_state: if table.is_some() { "read" } else { "failed" },
        listeners: table.unwrap_or_default(),
        subcommands: facts.one("help").map(|help| subcommands(&help.text(0), &clean)).unwrap_or_default(),
        vaults: facts.all("vault").map(|fact| vault(fact, &clean)).collect(),
        resolver: state.map(|state| resolver(&state, &clean)),
        status: "inventory",
        error: facts.one("more_forwards").map(|_| "there are more markers than the 1000 that are told".to_owned()),
        ..Report::default()
    };
    // An address is the host's word too.
    for listener in &mut report.listeners {
        listener.address = clean.text(&listener.address);
    }
    report.sanitizer_state = clean.state();
    report
}

/// What the host's resolver has published, if anything.
///
/// # Errors
/// Why the file that is there says nothing.
pub(crate) fn state(facts: &Facts) -> Result<Option<ResolverState>, String> {
    if facts.one("resolver_state_unread").is_some() {
        return Err("it is no file that the account can read".to_owned());
    }
    let Some(fact) = facts.one("resolver_state").filter(|fact| fact.len() > 1) else { return Ok(None) };
    serde_json::from_slice(fact.bytes(1)).map(Some).map_err(|e| format!("it is damaged: {e}"))
}

/// Address of each service that the directory declares for the host; an adapter without a bind has the port that the
/// host's own resolver says.
fn urls(declared: &Declaration<'_>, state: Option<&ResolverState>) -> BTreeMap<String, String> {
    let given = |service: &str, consumer: &str| {
        let adapter = state?.adapters.iter().find(|a| a.service == service && a.consumer == consumer)?;
        adapter.bind.parse().ok()
    };
    let (all, _) = forwards::declared(declared.registry, declared.target, &given);
    all.into_iter().map(|declared| (declared.service, declared.url)).collect()
}

fn binaries(facts: &Facts, declared: &BTreeMap<String, String>, clean: &Sanitizer) -> Vec<Binary> {
    let told: BTreeMap<String, &Fact> = facts.all("binary").map(|fact| (fact.text(0), fact)).collect();
    let names = declared.keys().chain(told.keys().filter(|name| !declared.contains_key(*name)));
    let all = names.map(|name| {
        let fact = told.get(name);
        let declared = declared.get(name);
        let output = fact.map(|fact| fact.text(2)).unwrap_or_default();
        let version = versions::said(&output);
        Binary {
            name: clean.text(name),
            path: fact.map(|fact| fact.text(1)).filter(|path| !path.is_empty()).map(|path| clean.text(&path)),
            verdict: versions::judge(declared.map(String::as_str), version),
            version: version.map(|version| clean.text(version)),
            declared_version: declared.cloned(),
        }
    });
    // A binary that nobody declares and nobody has is none.
    all.filter(|binary| binary.path.is_some() || binary.declared_version.is_some()).collect()
}

fn platform(system: &str, machine: &str) -> String {
    let machine = match machine {
        "x86_64" | "amd64" => "amd64",
        "aarch64" | "arm64" => "arm64",
        other => other,
    };
    format!("{}-{machine}", system.to_lowercase())
}

/// The verbs in a program's help.
fn subcommands(help: &str, clean: &Sanitizer) -> Vec<String> {
    let lines = help.lines().skip_while(|line| line.trim_end() != "Commands:").skip(1);
    let verbs = lines.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("    "));
    verbs.filter_map(|line| line.split_whitespace().next()).map(|verb| clean.text(verb)).collect()
}

fn vault(fact: &Fact, clean: &Sanitizer) -> Vault {
    Vault { path: clean.text(&fact.text(0)), state: clean.text(&fact.text(1)), bytes: fact.text(2).parse().ok() }
}

fn resolver(state: &ResolverState, clean: &Sanitizer) -> Resolver {
    Resolver {
        state: clean.text(&state.state),
        pid: state.pid,
        updated_at: clean.text(&state.updated_at),
        generation: state.generation,
        unserved: state.unserved.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stado_fleet::document::Document;
    use stado_fleet::validate::{Valid, validate};

    fn valid() -> Valid {
        let adapters = json!([{"service": "web", "consumer": "shop", "bind": "127.0.0.1:17601"}, {"service": "db", "consumer": "shop"}]);
        let service = |port: u16| {
            json!({
                "managed_service": "unit", "active_host": "control",
                "endpoints": {"control": {"url": format!("http://127.0.0.1:{port}")}},
                "consumers": {"shop": {"capabilities": []}}
            })
        };
        let document = json!({
            "schema_version": 2,
            "targets": [
                {"name": "control", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@192.0.2.10",
                 "services": [{"name": "unit"}]},
                {"name": "worker", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@192.0.2.11",
                 "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15,
                                      "adapters": adapters}}
            ],
            "service_directory": {
                "authority": {"target": "control", "command": "/opt/stado"}, "generation": 1,
                "services": {"web": service(8080), "db": service(5432)}
            }
        });
        validate(Document::from_value(document)).unwrap()
    }

    fn hex(text: &str) -> String {
        format!("x{}", text.bytes().map(|b| format!("{b:02x}")).collect::<String>())
    }

    fn made(lines: &[String]) -> Report {
        let answer = format!("stado-inventory 1\n{}\nstado-inventory end\n", lines.join("\n"));
        let valid = valid();
        let declared = Declaration {
            registry: &valid.registry,
            target: &"worker".parse().unwrap(),
            release_platform: Some("linux-amd64".into()),
            versions: [("stado".to_owned(), "0.2.0".to_owned()), ("brama".to_owned(), "1.0".to_owned())].into(),
        };
        report(&Facts::parse(answer.as_bytes()).unwrap(), &declared)
    }

    #[test]
    fn a_marker_may_match_on_one_axis_and_not_on_the_other() {
        let state =
            r#"{"state":"serving","pid":7,"adapters":[{"service":"db","consumer":"shop","bind":"127.0.0.1:20001"}]}"#;
        let report = made(&[
            format!("forward {} read {}", hex("web.local"), hex("http://127.0.0.1:9\n")),
            format!("forward {} read {}", hex("db.local"), hex("http://localhost:20001\n")),
            format!("forward {} read {}", hex("old.url"), hex("http://127.0.0.1:22\n")),
            format!("forward {} refused_symlink x", hex("link.local")),
            "listeners_from proc".into(),
            "listen 0100007F:0009 1".into(),
            "listen 00000000:0016 2".into(),
            format!("resolver_state {} {}", hex("/s"), hex(state)),
        ]);
        let axes: Vec<_> =
            report.forwards.iter().map(|f| (f.file.as_str(), f.reconciliation, f.declaration_verdict)).collect();
        use super::markers::{Declared::*, Socket};
        assert_eq!(
            axes,
            [
                ("web.local", Socket::Matched, Disagrees),
                ("db.local", Socket::Stale, Matched),
                ("old.url", Socket::Matched, Undeclared),
                ("link.local", Socket::Unreadable, Undeclared),
            ]
        );
        assert_eq!(report.forwards[0].declared_url.as_deref(), Some("http://127.0.0.1:17601"));
        assert_eq!(report.reconciliation.stale_markers, ["db"]);
        assert_eq!(report.reconciliation.disagreeing_markers, ["web"]);
        assert!(report.reconciliation.missing_markers.is_empty());
        assert_eq!(report.resolver.as_ref().map(|r| r.pid), Some(7));
    }

    #[test]
    fn a_table_that_could_not_be_read_judges_no_marker() {
        let marker = format!("forward {} read {}", hex("web.local"), hex("http://127.0.0.1:17601"));
        let report = made(&[marker, "listeners_from nothing".into()]);
        assert_eq!((report.listeners_state, report.reconciliation.unknown), ("failed", 1));
        assert_eq!(report.reconciliation.declaration_matched, 1);
        assert_eq!(report.reconciliation.missing_markers, Vec::<String>::new(), "db has no port that anybody knows");
    }

    #[test]
    fn what_is_declared_and_not_there_is_told() {
        let report = made(&[
            format!("binary {} {} {}", hex("stado"), hex("/opt/stado"), hex("stado 0.1.0")),
            format!("binary {} x x", hex("brama")),
            format!(
                "help {}",
                hex("About\n\nCommands:\n  resolver  The daemon\n  serve     The same\n\nOptions:\n  -h\n")
            ),
            format!("platform {} {}", hex("Darwin"), hex("arm64")),
            format!("vault {} {} {}", hex("/h/.stado/vault.json"), hex("file"), hex("120")),
        ]);
        assert_eq!(report.reconciliation.missing_markers, ["web"]);
        let verdicts: Vec<_> = report.managed_binaries.iter().map(|b| (b.name.as_str(), b.verdict)).collect();
        assert_eq!(verdicts, [("brama", versions::Verdict::Unknown), ("stado", versions::Verdict::Behind)]);
        assert_eq!(report.subcommands, ["resolver", "serve"]);
        assert_eq!(
            (report.release_platform.as_deref(), report.release_platform_verdict),
            (Some("darwin-arm64"), "mismatched")
        );
        assert_eq!(report.vaults[0].bytes, Some(120));
        assert_eq!((report.status, report.sanitizer_state), ("inventory", "clean"));
    }

    #[test]
    fn nothing_that_a_host_says_steers_the_terminal() {
        let evil = "\u{1b}[2J\u{202e}";
        let report = made(&[
            format!("forward {} read {}", hex(&format!("{evil}.local")), hex(&format!("http://127.0.0.1:1/{evil}"))),
            format!("binary {} {} {}", hex("stado"), hex(&format!("/{evil}")), hex(&format!("stado 1.0{evil}"))),
            format!("host {}", hex(evil)),
            format!("platform {} {}", hex(evil), hex("x")),
            format!("listeners_from lsof\nlsof {}", hex(&format!("n{evil}:80"))),
            format!("vault {} {} x", hex(evil), hex(evil)),
            format!("help {}", hex(&format!("Commands:\n  {evil}\n"))),
        ]);
        assert_eq!(report.sanitizer_state, "sanitized");
        let texts = [report.to_string(), serde_json::to_value(&report).unwrap().to_string()];
        for text in texts {
            assert!(!text.contains('\u{1b}') && !text.contains("\\u001b") && !text.contains('\u{202e}'), "{text}");
        }
    }
}
