//! Outputs that were seen, and the schemas that they are held to.
use super::FOLDER;
use crate::support::home::Home;
use crate::support::http::python_with;
use crate::support::process::{Run, run_with};
use clap::{Command, CommandFactory};
use serde_json::{Value, json};
use stado::args::{Devmesh, Stado};
use std::collections::BTreeSet;

/// What a story has seen.
#[derive(Default)]
pub struct Samples {
    taken: Vec<Value>,
    shown: BTreeSet<String>,
}

impl Samples {
    /// Runs `stado` with these words; its JSON. With a format named, its rows.
    #[track_caller]
    pub fn stado(&mut self, home: &Home, code: i32, line: &str) -> Value {
        let run = home.stado(&words(line)).exits(code);
        self.take(&Stado::command(), line, &run)
    }

    /// The same of `devmesh`.
    #[track_caller]
    pub fn devmesh(&mut self, home: &Home, code: i32, line: &str) -> Value {
        let run = home.devmesh(&words(line)).exits(code);
        self.take(&Devmesh::command(), line, &run)
    }

    /// What `stado` printed when it was run otherwise.
    #[track_caller]
    pub fn ran(&mut self, line: &str, run: &Run) -> Value {
        self.take(&Stado::command(), line, run)
    }

    #[track_caller]
    fn take(&mut self, program: &Command, line: &str, run: &Run) -> Value {
        let (name, value) = (schema(program, line), run.json());
        self.taken.push(json!({"schema": name, "what": line, "value": value}));
        self.shown.insert(name);
        value
    }

    /// Every output is what its schema says, and they are outputs of exactly these verbs.
    #[track_caller]
    pub fn hold(self, home: &Home, verbs: &[&str]) {
        let verbs: BTreeSet<String> = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        assert_eq!(self.shown, verbs, "left: what the story has shown; right: what it says that it shows");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/json_schemas.py");
        let mut python = home.command(python_with("jsonschema").unwrap(), &[script, FOLDER]);
        let run = run_with(&mut python, Value::from(self.taken).to_string().as_bytes());
        assert_eq!((run.code, run.stdout.as_str()), (0, "\n"), "{}", run.stderr);
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// How a verb can print JSON: as a document, as rows.
fn kinds(verb: &Command) -> (bool, bool) {
    let mut flags = verb.get_arguments();
    let document = verb.get_arguments().any(|flag| flag.get_long() == Some("json"));
    let format = flags.find(|flag| flag.get_long() == Some("format"));
    (document, format.is_some_and(|flag| flag.get_possible_values().iter().any(|value| value.get_name() == "json")))
}

/// The schema of a command line: the words of its verb, behind `devmesh` when it is that program's; `.rows` for the rows of a
/// verb that prints a document too.
fn schema(program: &Command, line: &str) -> String {
    let (mut verb, mut name) = (program, prefix(program));
    for word in words(line) {
        let Some(next) = verb.find_subcommand(word) else { break };
        verb = next;
        name.push(next.get_name().to_owned());
    }
    let rows = line.contains("--format json");
    assert!(rows || line.contains("--json"), "{line} asks for no JSON");
    let more = if rows && kinds(verb).0 { ".rows" } else { "" };
    format!("{}{more}", name.join("-"))
}

fn prefix(program: &Command) -> Vec<String> {
    if program.get_name() == "stado" { Vec::new() } else { vec![program.get_name().to_owned()] }
}

/// Every output that the programs' own trees have.
pub fn outputs() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for program in [Stado::command(), Devmesh::command()] {
        collect(&program, &prefix(&program), &mut found);
    }
    found
}

fn collect(verb: &Command, name: &[String], found: &mut BTreeSet<String>) {
    for next in verb.get_subcommands() {
        collect(next, &[name, &[next.get_name().to_owned()]].concat(), found);
    }
    let joined = name.join("-");
    match kinds(verb) {
        (true, true) => found.extend([joined.clone(), format!("{joined}.rows")]),
        (true, false) | (false, true) => drop(found.insert(joined)),
        (false, false) => {}
    }
}
