//! The scripts, run by the shell of this machine in a home of their own.
use crate::placement::state::{self, Place};
use crate::placement::{StatePath, Unit, shell, units};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn file(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }
    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.file(path).parent().unwrap()).unwrap();
        std::fs::write(self.file(path), text).unwrap();
    }
    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.file(path)).ok()
    }
    fn try_sh(&self, script: &str, stdin: Stdio) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env("HOME", self.0.path()).current_dir(self.0.path()).stdin(stdin);
        command.output().unwrap()
    }
    #[track_caller]
    fn sh(&self, script: &str) -> String {
        let output = self.try_sh(script, Stdio::null());
        assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
    fn refuses(&self, script: &str) -> String {
        let output = self.try_sh(script, Stdio::null());
        assert!(!output.status.success(), "{script}");
        String::from_utf8(output.stderr).unwrap().trim().to_owned()
    }
    /// Everything below it, in order.
    fn all(&self) -> Vec<String> {
        self.sh("cd && find . ! -type d | sort").lines().map(str::to_owned).collect()
    }
}

fn place(path: &str, tree: bool, required: bool) -> Place {
    Place::of(&StatePath { path: path.into(), required, work: false, tree }, None).unwrap()
}

/// Packs in one home and unpacks in the other; what the destination said.
fn copy(from: &Home, to: &Home, place: &Place) -> String {
    let mut pack = Command::new("/bin/sh");
    let mut packing =
        pack.args(["-c", &state::pack(place)]).env("HOME", from.0.path()).stdout(Stdio::piped()).spawn().unwrap();
    let output = to.try_sh(&state::unpack(place, ID), packing.stdout.take().unwrap().into());
    packing.wait().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn files_and_trees_arrive_with_their_names_modes_links_and_checksums() {
    let (from, to) = (Home::new(), Home::new());
    from.write("data/it's one/a b.txt", "one");
    from.write("data/empty", "");
    from.sh("cd data && chmod 640 empty && ln -s 'it'\\''s one' link && mkdir hollow && chmod 711 hollow");
    from.write("-single", "two");
    for place in [place("data", true, true), place("-single", false, true)] {
        let sum = from.sh(&state::checksum(&place));
        assert_eq!(copy(&from, &to, &place), sum);
        assert!(sum.starts_with("checksum ") && sum.trim().len() == 73, "{sum}");
        to.sh(&state::install(std::slice::from_ref(&place), ID));
        assert_eq!(to.sh(&state::checksum(&place)), sum);
    }
    assert_eq!(to.read("data/link/a b.txt").as_deref(), Some("one"));
    assert_eq!(to.sh("ls -ld data/hollow data/empty | cut -c1-10"), "-rw-r-----\ndrwx--x--x\n");
    // A difference in content, in a mode, in a name or in a link is another checksum.
    for change in [
        "echo x >data/empty",
        "chmod 600 data/empty",
        "mv data/empty data/e",
        "ln -sfn . data/link",
        "rmdir data/hollow",
    ] {
        let other = Home::new();
        copy(&from, &other, &place("data", true, true));
        other.sh(&state::install(&[place("data", true, true)], ID));
        other.sh(change);
        let sums = [&from, &other].map(|home| home.sh(&state::checksum(&place("data", true, true))));
        assert_ne!(sums[0], sums[1], "{change}");
    }
}

#[test]
fn an_archive_that_is_cut_gives_no_checksum() {
    let (from, to) = (Home::new(), Home::new());
    from.write("data", &"x".repeat(100_000));
    let archive = from.try_sh(&state::pack(&place("data", false, true)), Stdio::null()).stdout;
    std::fs::write(from.file("cut.tar"), &archive[..50_000]).unwrap();
    let cut = std::fs::File::open(from.file("cut.tar")).unwrap();
    let said = to.try_sh(&state::unpack(&place("data", false, true), ID), cut.into());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(!said.contains("checksum") && said.contains("tar"), "{said}");
    to.sh(&state::restore(&[place("data", false, true)], ID));
    assert_eq!(to.all(), Vec::<String>::new());
}

#[test]
fn whatever_was_there_before_comes_back_from_every_cut() {
    let places = [place("s/data", false, true), place("s/new", false, true), place("s/none", false, false)];
    let before = [("s/data", "previous"), ("s/none", "left from an earlier time"), ("s/other", "kept")];
    // It is cut after its first change, its second, …, and some runs come to their end.
    let install = state::install(&places, ID);
    let cuts = install.matches("mv ").count() + install.matches(": >").count();
    let mut whole = 0;
    for cut in 0..=cuts {
        let (from, to) = (Home::new(), Home::new());
        from.write("s/data", "copied");
        from.write("s/new", "also new");
        before.iter().for_each(|(path, text)| to.write(path, text));
        copy(&from, &to, &places[0]);
        copy(&from, &to, &places[1]);
        to.sh(&state::absent(&places[2], ID));
        let counting = format!(
            "n=0; next() {{ n=$((n+1)); [ $n -le {cut} ] || exit 7; }}\n\
             mark() {{ next; : >\"$1\"; }}\nmv() {{ next; command mv \"$@\"; }}\nsync() {{ :; }}\n{}",
            install.replace(": >", "mark ")
        );
        if to.try_sh(&counting, Stdio::null()).status.success() {
            whole += 1;
            assert_eq!((to.read("s/data").as_deref(), to.read("s/none")), (Some("copied"), None));
            // Said again it changes nothing, also where the service has made a new file meanwhile.
            to.write("s/none", "made by the service");
            to.sh(&install);
            assert_eq!(to.read("s/none").as_deref(), Some("made by the service"));
        }
        to.sh(&state::restore(&places, ID));
        to.sh(&state::restore(&places, ID));
        assert_eq!(to.all(), ["./s/data", "./s/none", "./s/other"], "cut after {cut}");
        before.iter().for_each(|(path, text)| assert_eq!(to.read(path).as_deref(), Some(*text), "cut after {cut}"));
    }
    assert!((1..cuts).contains(&whole), "{whole} of {cuts} were not cut");
}

#[test]
fn a_finished_move_leaves_nothing_beside_the_state_and_so_does_the_next_look() {
    let (from, to) = (Home::new(), Home::new());
    let data = place("data", true, true);
    from.write("data/a", "new");
    to.write("data/old", "old");
    copy(&from, &to, &data);
    to.sh(&state::install(std::slice::from_ref(&data), ID));
    to.sh(&state::tidy(std::slice::from_ref(&data), ID));
    assert_eq!(to.all(), ["./data/a"]);
    copy(&from, &to, &data);
    let free = to.sh(&state::room(std::slice::from_ref(&data)));
    assert!(free.trim().parse::<u64>().unwrap() > 0);
    assert_eq!(to.all(), ["./data/a"]);
}

#[test]
fn a_look_says_what_is_there_and_refuses_what_cannot_be_moved() {
    let home = Home::new();
    home.write("file", "x");
    home.sh("mkdir tree && ln -s file link");
    let look = |path: &str, tree: bool, required: bool| state::look(&[place(path, tree, required)]);
    assert!(home.sh(&look("file", false, true)).starts_with("present "));
    assert!(home.sh(&look("tree", true, true)).starts_with("present "));
    assert_eq!(home.sh(&look("nothing", false, false)), "absent\n");
    assert_eq!(home.refuses(&look("nothing", false, true)), "required state ~/nothing is missing");
    assert_eq!(home.refuses(&look("tree", false, true)), "~/tree is not a regular file");
    assert_eq!(home.refuses(&look("file", true, true)), "~/file is not a directory");
    assert_eq!(home.refuses(&look("link", false, true)), "~/link is not a regular file");
    let work = StatePath { path: "d/x".into(), required: true, work: true, tree: false };
    assert!(Place::of(&work, None).is_none());
    home.write("work root/d/x", "1");
    let root = home.file("work root");
    let place = Place::of(&work, root.to_str()).unwrap();
    assert!(home.sh(&state::look(&[place])).starts_with("present "));
}

fn unit(start: &str, stop: &str, running: &str) -> Unit {
    let raw = json!({"name": "notes", "kind": "command", "start": start, "stop": stop, "running": running,
                     "enable": "echo enabled >state", "disable": "echo disabled >state"});
    Unit::read("notes", "a", &raw).unwrap()
}

#[test]
fn plain_commands_are_started_once_stopped_for_sure_and_told_about_the_start_of_the_host() {
    let home = Home::new();
    let service = [unit(
        "sleep 1000 & echo $! >pid; echo started >>starts",
        "kill $(cat pid)",
        "kill -0 $(cat pid) && ! grep -q ') Z ' /proc/$(cat pid)/stat",
    )];
    let alone = |script: String| shell::alone(&script);
    assert_eq!(home.sh(&units::running(&service)), "");
    home.sh(&alone(units::ready(&service, |_| false)));
    home.sh(&alone(units::start(&service)));
    home.sh(&alone(units::start(&service)));
    assert_eq!(home.read("starts").as_deref(), Some("started\n"), "one that runs is left alone");
    assert_eq!(home.sh(&units::running(&service)), "notes\n");
    assert_eq!(home.refuses(&alone(units::ready(&service, |_| false))), "notes already runs here");
    home.sh(&alone(units::enable(&service)));
    assert_eq!(home.read("state").as_deref(), Some("enabled\n"));
    home.sh(&alone(units::disable(&service)));
    assert_eq!(home.read("state").as_deref(), Some("disabled\n"));
    home.sh(&alone(units::stop(&service)));
    assert_eq!(home.sh(&units::running(&service)), "");
    home.sh(&alone(units::stop(&service)));
}

#[test]
fn what_no_longer_runs_is_stopped_also_when_its_command_finds_nobody_to_end() {
    let home = Home::new();
    home.sh(&shell::alone(&units::stop(&[unit("true", "exit 1", "false")])));
    let refused = home.refuses(&shell::alone(&units::stop(&[unit("true", "false", "true")])));
    assert!(refused.ends_with("notes could not be stopped"), "{refused}");
}

#[test]
fn a_command_that_fails_is_told_with_its_own_last_words() {
    let home = Home::new();
    let service = [unit("echo 'the disk is on fire'; exit 3", "false", "true")];
    let failing = [unit("echo 'the disk is on fire'; exit 3", "true", "false")];
    assert_eq!(home.refuses(&shell::alone(&units::start(&failing))), "the disk is on fire\nnotes could not be started");
    assert!(home.refuses(&shell::alone(&units::stop(&service))).ends_with("notes could not be stopped"));
}
