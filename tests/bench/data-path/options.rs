//! What a run measures.
use crate::lines::Group;
use crate::peers::Subject;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str =
    "data-path [--rounds N] [--window SECONDS] [--only GROUP,…] [--peers NAME,…] [--idle CONNECTIONS] [--table FILE]
groups: bulk trips connections resets user idle listeners start
peers: direct stado haproxy haproxy-splice nginx socat tokio-copy";

pub struct Options {
    pub rounds: usize,
    pub window: Duration,
    pub idle: usize,
    pub table: Option<PathBuf>,
    only: Option<Vec<String>>,
    peers: Option<Vec<String>>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Self {
        let mut options =
            Self { rounds: 5, window: Duration::from_secs(1), idle: 5000, table: None, only: None, peers: None };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let value = rest.next().unwrap_or_else(|| panic!("{flag} needs a value\n{USAGE}"));
            let list = || Some(value.split(',').map(str::to_owned).collect());
            match flag.as_str() {
                "--rounds" => options.rounds = value.parse().expect(USAGE),
                "--window" => options.window = Duration::from_secs_f64(value.parse().expect(USAGE)),
                "--idle" => options.idle = value.parse().expect(USAGE),
                "--table" => options.table = Some(value.into()),
                "--only" => options.only = list(),
                "--peers" => options.peers = list(),
                other => panic!("no option {other}\n{USAGE}"),
            }
        }
        options
    }

    pub fn wants(&self, group: Group) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == group.name()))
    }

    /// What is asked for and installed. Whoever is absent is named and left out.
    pub fn subjects(&self) -> Vec<Subject> {
        let asked = |subject: &Subject| self.peers.as_ref().is_none_or(|all| all.iter().any(|n| n == subject.name()));
        let (present, absent): (Vec<_>, Vec<_>) =
            Subject::ALL.into_iter().filter(asked).partition(|subject| subject.version().is_some());
        for subject in absent {
            println!("{} is not installed: left out", subject.name());
        }
        present
    }
}
