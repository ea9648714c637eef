//! A command that is killed at a chosen system call: a fault point at each step of whatever it writes.
use super::home::{Home, STADO};
use super::process::run;

/// The calls that change files, each a class of its own: a thread counts the calls of a class. A question mark: where
/// this machine has such a call.
const CHANGES: [&str; 7] = [
    "?write,?pwrite64",
    "?fsync,?fdatasync",
    "?rename,?renameat,?renameat2",
    "?link,?linkat",
    "?unlink,?unlinkat",
    "?mkdir,?mkdirat",
    "?ftruncate,?flock",
];

/// Whether processes may be traced here.
pub fn usable() -> Result<(), String> {
    if super::program("strace").is_none() {
        return Err("no strace".into());
    }
    let traced = run(std::process::Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]));
    if traced.code == 0 { Ok(()) } else { Err(traced.stderr) }
}

/// Runs `stado` again and again, each time killed at another call: the first, the second, … of each class, until it comes
/// to its end. `before` is called before each run, `after` with what was killed. How many runs were killed.
pub fn at_each_call(home: &Home, args: &[&str], before: impl Fn(), after: impl Fn(&str)) -> usize {
    let mut kills = 0;
    for class in CHANGES {
        for n in 1.. {
            assert!(n < 1000, "{args:?} never comes to an end of {class}");
            before();
            if !killed_at(home, class, n, args) {
                break;
            }
            after(&format!("killed at call {n} of {class} in {args:?}"));
            kills += 1;
        }
    }
    kills
}

/// Runs `stado` once, killed at the `n`th call of a class; whether it came so far.
pub fn killed_at(home: &Home, class: &str, n: u32, args: &[&str]) -> bool {
    let (trace, inject) = (format!("trace={class}"), format!("inject={class}:signal=KILL:when={n}"));
    let strace = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject, STADO];
    let ended = run(&mut home.command("strace", &[&strace[..], args].concat()));
    match ended.code {
        0 => false,
        -9 | 137 => true,
        _ => panic!("{args:?}: {} {}", ended.code, ended.stderr),
    }
}
