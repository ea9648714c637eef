//! `stado top` on a real terminal: services that come, a daemon that dies, and the terminal given back.
use crate::support::home::{Home, STADO};
use crate::support::process::Process;
use crate::support::tcp::echo;
use crate::support::terminal::Terminal;
use crate::support::{PATIENCE, ports, program, wait_until};
use rustix::process::Signal;

const TOP: [&str; 2] = [STADO, "top"];

fn serve(home: &Home, args: &[&str]) -> Process {
    let daemon = home.start("resolver", STADO, &[&["resolver", "serve"], args].concat());
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    daemon
}

fn register(home: &Home, name: &str, kind: &str) -> String {
    let backend = echo("x").to_string();
    let args = ["service", "register", "--name", name, "--backend", &backend, "--kind", kind, "--once", "--ttl", "600"];
    home.stado(&args).ok();
    home.stado(&["service", "resolve", name, "--raw"]).ok().stdout.trim().to_owned()
}

#[test]
fn a_service_appears_is_filtered_copied_and_opened_and_the_terminal_is_given_back() {
    needs!("python3");
    let home = Home::new();
    let opener = home.program("bin/xdg-open", "#!/bin/sh\nprintf %s \"$1\" > \"$HOME/opened\"\n");
    let path = format!("{}:/usr/bin:/bin", std::path::Path::new(&opener).parent().unwrap().display());
    let env = [("PATH", path.as_str()), ("DISPLAY", ":0")];
    let mut terminal = Terminal::start(&home, "80x24", &env, &TOP);
    let shown = terminal.shows("no daemon runs here");
    assert!(shown.alternate && shown.coloured && shown.has("goes on asking"), "{shown:#?}");

    let lease = ports::one();
    let _daemon = serve(&home, &["--http-enabled", "--http-addr", &format!("127.0.0.1:{}", lease.port())]);
    terminal.shows("No service yet");
    let address = register(&home, "checkout.db", "tcp");
    let url = register(&home, "web", "http");
    terminal.shows("[Routes 2]");
    terminal.types("/check\r");
    let shown = terminal.shows("[Routes 1]");
    let row = shown.lines.iter().find(|line| line.starts_with("> checkout.db")).unwrap();
    assert!(row.contains("ready") && row.contains(&address), "{shown:#?}");
    terminal.types("c");
    let shown = terminal.shows(&format!("copied {address}"));
    assert_eq!(shown.copied, [address]);

    terminal.types("\x1b");
    terminal.shows("[Routes 2]");
    terminal.types("jo");
    terminal.shows(&format!("opened {url}"));
    assert_eq!(home.read("opened"), url);
    terminal.types("\r");
    terminal.shows("the mesh of this host, http");
    terminal.resize(40, 10);
    terminal.until("the page in less room", |shown| shown.lines.len() == 10 && shown.has("Esc back"));

    terminal.types("qq");
    let end = terminal.ends();
    assert!(end.ended == Some(0) && end.restored, "{end:#?}");
}

#[test]
fn a_daemon_that_hangs_dies_or_comes_back_is_told_in_the_view() {
    needs!("python3");
    let home = Home::new();
    let daemon = serve(&home, &[]);
    register(&home, "checkout.db", "tcp");
    let mut terminal = Terminal::start(&home, "100x24", &[("NO_COLOR", "1")], &TOP);
    let shown = terminal.shows("checkout.db");
    assert!(!shown.coloured, "{shown:#?}");
    daemon.signal(Signal::STOP);
    terminal.shows("no answer for ");
    let shown = terminal.shows("Below is what was known last");
    assert!(shown.has("> checkout.db") && shown.has(" unknown "), "{shown:#?}");
    daemon.signal(Signal::CONT);
    terminal.until("it answers again", |shown| shown.has(" ready ") && !shown.has("was known last"));
    daemon.kill9();
    terminal.shows("no daemon runs here");
    let _again = serve(&home, &[]);
    terminal.until("another one answers", |shown| shown.has("> checkout.db") && !shown.has("no daemon runs here"));
    terminal.signal(Signal::TERM);
    let end = terminal.ends();
    assert!(end.ended == Some(0) && end.restored, "{end:#?}");
}

#[test]
fn the_view_goes_to_the_shell_and_comes_back() {
    needs!("python3");
    let home = Home::new();
    let bash = program("bash").unwrap().display().to_string();
    let shell = [&bash, "--norc", "--noprofile", "-i"];
    let mut terminal = Terminal::start(&home, "80x24", &[], &shell);
    terminal.shows("bash-");
    terminal.types(&format!("'{STADO}' top\r"));
    terminal.until("the view", |shown| shown.alternate && shown.has("no daemon runs here"));
    terminal.types("\x1a");
    // The shell edits lines itself, so that it is no line discipline to compare with.
    terminal.until("the shell", |shown| !shown.alternate && shown.has("Stopped"));
    terminal.types("fg\r");
    terminal.until("the view again", |shown| shown.alternate && shown.has("no daemon runs here"));
    terminal.types("\x03");
    terminal.until("the shell again", |shown| !shown.alternate);
    terminal.types("echo \"ended with $?\"\r");
    terminal.shows("ended with 0");
    terminal.types("exit\r");
    terminal.ends();
}

#[test]
fn where_no_view_can_be_drawn_it_is_said_what_to_do_instead() {
    needs!("python3");
    let home = Home::new();
    let piped = home.stado(&["top"]).exits(2);
    assert!(piped.stderr.contains("is no terminal") && piped.stderr.contains("stado status"), "{}", piped.stderr);
    for (term, says) in [("dumb", "TERM=dumb"), ("", "TERM is not set")] {
        let mut terminal = Terminal::start(&home, "100x24", &[("TERM", term)], &TOP);
        let end = terminal.ends();
        assert!(end.ended == Some(2) && end.has(says) && end.has("stado status"), "{end:#?}");
    }
}
