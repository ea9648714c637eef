//! What a machine may lack. A need that is listed in `tests/skips.txt` and not met lets its test pass with a line that
//! says so; with `STADO_NO_SKIPS=1`, as in the project's checks, it fails the test.
use super::{docker, is_root, netns, postgres, program};

const LIST: &str = include_str!("../../skips.txt");

fn python_with(modules: &str) -> Option<String> {
    super::http::python_with(modules).is_none().then(|| format!("no python3 with {modules}"))
}

/// Whether `need` is met; see the module. Used through `needs!`.
pub fn met(need: &str) -> bool {
    let missing = match need {
        "netns" if !is_root() => Some("not root".to_owned()),
        "netns" => netns::usable().err(),
        "statistic" => (!netns::loses()).then(|| "no statistic match".to_owned()),
        "descriptors" => {
            let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
            most.is_some_and(|most| most < 20_000).then(|| "a hard limit below 20,000".to_owned())
        }
        "root" => (!is_root()).then(|| "not root".to_owned()),
        "tmpfs" => super::disk::usable().err(),
        "sshd" => (program("sshd").is_none() || program("ssh-keygen").is_none()).then(|| "no sshd".to_owned()),
        "postgres" => postgres::programs().is_none().then(|| "no initdb".to_owned()),
        "docker" => docker::usable().err(),
        "python3-h2" => python_with("h2.connection, hyperframe"),
        "python3-jsonschema" => python_with("jsonschema"),
        "python3-websocket" => python_with("websocket"),
        "s3-server" => super::s3_server::usable().err(),
        "strace" => super::strace::usable().err(),
        other => program(other).is_none().then(|| format!("no {other}")),
    };
    let Some(missing) = missing else { return true };
    let listed = LIST.lines().any(|line| line.split_whitespace().next() == Some(need));
    assert!(listed, "{need} is needed and not in tests/skips.txt: {missing}");
    assert!(std::env::var_os("STADO_NO_SKIPS").is_none(), "{need} is needed and skips are forbidden: {missing}");
    eprintln!("SKIPPED, needs {need}: {missing}");
    false
}
