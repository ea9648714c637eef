//! The stores in which programs look up whom they trust.
mod java;
mod nss;
mod system;
mod tool;

use crate::args::{StoreArgs, StoreName};
use crate::config::{ConfigError, Env};
use serde_json::{Value, json};
use stado_resolver::http::tls::authority::{AuthorityFacts, CERT};
use std::path::{Path, PathBuf};
use tool::Tools;

/// What became of one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    store: &'static str,
    /// The file, folder or database.
    place: String,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The authority is in it: since now, or since before.
    Trusted { now: bool },
    /// It is not: since now, or since before.
    Untrusted { now: bool },
    /// There is no such store on this machine.
    Absent,
    /// What has to be done by hand, and why; shell commands, or sentences.
    ByHand { why: String, steps: Vec<String> },
}

impl Report {
    fn new(store: &'static str, place: impl Into<String>, state: State) -> Self {
        Self { store, place: place.into(), state }
    }

    pub(super) fn needs_hands(&self) -> bool {
        matches!(self.state, State::ByHand { .. })
    }

    fn word(&self) -> &'static str {
        match self.state {
            State::Trusted { now: true } => "trusted",
            State::Trusted { now: false } => "already trusted",
            State::Untrusted { now: true } => "removed",
            State::Untrusted { now: false } => "not trusted",
            State::Absent => "absent",
            State::ByHand { .. } => "by hand",
        }
    }

    pub(super) fn json(&self) -> Value {
        let (why, steps) = match &self.state {
            State::ByHand { why, steps } => (Some(why), steps.clone()),
            _ => (None, Vec::new()),
        };
        json!({"store": self.store, "place": self.place, "state": self.word(), "why": why, "steps": steps})
    }

    /// A line, and the steps that are left to a person.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: {} ({})\n", self.store, self.word(), self.place);
        if let State::ByHand { why, steps } = &self.state {
            text.push_str(&format!("  {why}:\n"));
            steps.iter().for_each(|step| text.push_str(&format!("    {step}\n")));
        }
        text
    }
}

/// The authority and where to look for stores.
pub(super) struct Stores {
    cert: PathBuf,
    pem: String,
    /// Tells this authority's entries from all others.
    mark: String,
    wanted: Vec<StoreName>,
    root: Option<PathBuf>,
    keystore: Option<PathBuf>,
    home: PathBuf,
    tools: Tools,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Install,
    Uninstall,
    Look,
}

impl Stores {
    pub(super) fn new(folder: &Path, facts: &AuthorityFacts, args: &StoreArgs, env: &Env) -> Result<Self, ConfigError> {
        let all = vec![StoreName::System, StoreName::Nss, StoreName::Java];
        Ok(Self {
            cert: folder.join(CERT),
            pem: facts.pem.clone(),
            mark: format!("stado-{}", facts.fingerprint.chars().take(16).collect::<String>()),
            wanted: if args.stores.is_empty() { all } else { args.stores.clone() },
            root: args.root.clone(),
            keystore: args.java_keystore.clone(),
            home: env.home()?,
            tools: Tools::new(env),
        })
    }

    pub(super) fn install(&self) -> Vec<Report> {
        self.each(Job::Install)
    }

    pub(super) fn uninstall(&self) -> Vec<Report> {
        self.each(Job::Uninstall)
    }

    /// Who trusts the authority now; changes nothing.
    pub(super) fn look(&self) -> Vec<Report> {
        self.each(Job::Look)
    }

    fn each(&self, job: Job) -> Vec<Report> {
        let one = |store: &StoreName| match store {
            StoreName::System => vec![system::run(self, job)],
            StoreName::Nss => nss::run(self, job),
            StoreName::Java => vec![java::run(self, job)],
        };
        self.wanted.iter().flat_map(one).collect()
    }
}

/// `path` as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
