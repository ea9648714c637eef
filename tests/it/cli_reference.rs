//! `docs/cli.md` is what the clap trees say. `STADO_WRITE_DOCS=1` writes it anew.
use clap::{Arg, Command, CommandFactory};
use stado::args::{Devmesh, Devmeshd, Stado};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
const HEAD: &str = "\
# Commands

Made from the programs' own description of themselves by `tests/it/cli_reference.rs`, which also checks that this page is
current; `STADO_WRITE_DOCS=1 tests/run -E 'test(cli_reference)'` writes it anew. What the settings of the mesh mean,
and where else they can be set, is in [configuration.md](configuration.md).

Exit codes of `stado`: 0 done · 1 failed, or the answer is no · 2 the command line is wrong · 69 unavailable, worth another
try · 75 the registry moved, and nothing else. `devmesh` and `devmeshd` end with 0 or 1.
";

#[test]
fn the_page_of_commands_is_current() {
    let mut page = HEAD.to_owned();
    for mut program in [Stado::command(), Devmesh::command(), Devmeshd::command()] {
        program.build();
        write_command(&mut page, &program, program.get_name(), true);
    }
    if std::env::var_os("STADO_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(new, old)| new != old);
    assert!(page == written, "docs/cli.md is out of date, first at {differs:?}; STADO_WRITE_DOCS=1 writes it anew");
}

/// A section for the program, and one for each verb that does something.
fn write_command(page: &mut String, command: &Command, path: &str, top: bool) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let verbs: Vec<&Command> = command.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    if top {
        write!(page, "\n## {path}\n\n{about}.\n").unwrap();
        write_arguments(page, "On every command:", command.get_arguments().filter(|arg| arg.is_global_set()));
    } else if verbs.is_empty() {
        write!(page, "\n### {path}\n\n{about}.\n\n```\n{path}{}\n```\n", usage(command)).unwrap();
        write_arguments(page, "", command.get_arguments().filter(|arg| !arg.is_global_set()));
        if let Some(more) = command.get_after_help() {
            write!(page, "\n{more}\n").unwrap();
        }
    }
    for verb in verbs {
        write_command(page, verb, &format!("{path} {}", verb.get_name()), false);
    }
}

/// What follows the path in a usage line: required options, then positions.
fn usage(command: &Command) -> String {
    let optional = |arg: &Arg| shown(arg) && !arg.is_positional() && !arg.is_required_set() && !arg.is_global_set();
    let options = if command.get_arguments().any(optional) { " [OPTIONS]" } else { "" };
    let required = command.get_opts().filter(|arg| arg.is_required_set()).map(|arg| format!(" {}", spelled(arg)));
    let positions = command.get_positionals().map(|arg| {
        let (name, many) = (value_names(arg), if repeats(arg) { "…" } else { "" });
        let dashes = if arg.is_last_set() { "-- " } else { "" };
        if arg.is_required_set() { format!(" {dashes}{name}{many}") } else { format!(" [{dashes}{name}{many}]") }
    });
    required.chain([options.to_owned()]).chain(positions).collect()
}

fn write_arguments<'a>(page: &mut String, title: &str, arguments: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<&Arg> = arguments.filter(|arg| shown(arg)).collect();
    if rows.is_empty() {
        return;
    }
    if !title.is_empty() {
        write!(page, "\n{title}\n").unwrap();
    }
    write!(page, "\n| | |\n|---|---|\n").unwrap();
    for arg in rows {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "| `{}` | {} |", spelled(arg), cell(&format!("{help}{}", more(arg)))).unwrap();
    }
}

fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

/// Possible values, and the default that clap itself knows.
fn more(arg: &Arg) -> String {
    let mut more = String::new();
    let takes = arg.get_action().takes_values();
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    if takes && !values.is_empty() {
        write!(more, " ({})", values.join(", ")).unwrap();
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes && defaults.iter().any(|value| !value.is_empty()) {
        write!(more, " [default: {}]", defaults.join(",")).unwrap();
    }
    more
}

fn spelled(arg: &Arg) -> String {
    let Some(long) = arg.get_long() else { return value_names(arg) };
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return format!("{short}--{long}");
    }
    let optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    let value = value_names(arg);
    if optional { format!("{short}--{long}[={value}]") } else { format!("{short}--{long} {value}") }
}

fn value_names(arg: &Arg) -> String {
    match arg.get_value_names() {
        Some(names) => names.join(" "),
        None => arg.get_id().as_str().to_uppercase(),
    }
}

fn repeats(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "\\<")
}
