//! What the system's own programs (curl, git, Python, Go, …) trust.
use super::{Job, Report, State, Stores, quoted, tool};
use std::path::Path;

/// A folder that administrators put certificates in, and the program that makes them count.
struct Kind {
    folder: &'static str,
    extension: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

/// Debian and its relatives, Fedora and its, SUSE, Arch.
const KINDS: [Kind; 4] = [
    Kind {
        folder: "/usr/local/share/ca-certificates",
        extension: "crt",
        program: "update-ca-certificates",
        arguments: &[],
    },
    Kind {
        folder: "/etc/pki/ca-trust/source/anchors",
        extension: "pem",
        program: "update-ca-trust",
        arguments: &["extract"],
    },
    Kind {
        folder: "/usr/share/pki/trust/anchors",
        extension: "pem",
        program: "update-ca-certificates",
        arguments: &[],
    },
    Kind {
        folder: "/etc/ca-certificates/trust-source/anchors",
        extension: "crt",
        program: "trust",
        arguments: &["extract-compat"],
    },
];

pub(super) fn run(stores: &Stores, job: Job) -> Report {
    if cfg!(target_os = "macos") {
        return keychain(stores, job);
    }
    let root = stores.root.as_deref().unwrap_or(Path::new("/"));
    let found = KINDS.iter().find_map(|kind| {
        let folder = root.join(kind.folder.trim_start_matches('/'));
        let program = stores.tools.find(kind.program)?;
        folder.is_dir().then_some((kind, folder, program))
    });
    let Some((kind, folder, program)) = found else { return Report::new("system", "/", unknown(stores)) };
    let file = folder.join(format!("{}.{}", stores.mark, kind.extension));
    let place = file.display().to_string();
    let there = file.exists();
    let state = match job {
        Job::Look | Job::Install if there => State::Trusted { now: false },
        Job::Look | Job::Uninstall if !there => State::Untrusted { now: false },
        Job::Look => State::Untrusted { now: false },
        Job::Install => change(stores, kind, &program, &file, true),
        Job::Uninstall => change(stores, kind, &program, &file, false),
    };
    Report::new("system", place, state)
}

fn change(stores: &Stores, kind: &Kind, program: &Path, file: &Path, install: bool) -> State {
    let arguments = arguments(stores, kind, install);
    let done = if install { write(file, &stores.pem) } else { std::fs::remove_file(file).map_err(|e| e.to_string()) };
    let done = done.and_then(|()| tool::run(program, &arguments));
    match done {
        Ok(_) if install => State::Trusted { now: true },
        Ok(_) => State::Untrusted { now: true },
        Err(error) => {
            let first = if install {
                format!("sudo install -m 644 {} {}", quoted(&stores.cert), quoted(file))
            } else {
                format!("sudo rm {}", quoted(file))
            };
            let words = std::iter::once(quoted(program)).chain(arguments.iter().map(|word| quoted(Path::new(word))));
            let second = format!("sudo {}", words.collect::<Vec<_>>().join(" "));
            State::ByHand { why: format!("this needs an administrator ({error})"), steps: vec![first, second] }
        }
    }
}

/// Readable by all: that is what it is for.
fn write(file: &Path, pem: &str) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    stado_fleet::disk::replace(file, pem.as_bytes()).map_err(|error| error.to_string())?;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).map_err(|error| error.to_string())
}

fn arguments(stores: &Stores, kind: &Kind, install: bool) -> Vec<String> {
    let mut all: Vec<String> = kind.arguments.iter().map(ToString::to_string).collect();
    // Without it Debian's program does not notice that a certificate is gone.
    if !install && kind.program == "update-ca-certificates" {
        all.push("--fresh".to_owned());
    }
    // Debian's program takes the parts of another root one by one.
    if let Some(root) = stores.root.as_deref().filter(|_| kind.program == "update-ca-certificates") {
        for (option, below) in [
            ("--certsconf", "etc/ca-certificates.conf"),
            ("--certsdir", "usr/share/ca-certificates"),
            ("--localcertsdir", "usr/local/share/ca-certificates"),
            ("--etccertsdir", "etc/ssl/certs"),
            ("--hooksdir", "etc/ca-certificates/update.d"),
        ] {
            all.extend([option.to_owned(), root.join(below).display().to_string()]);
        }
    }
    all
}

fn unknown(stores: &Stores) -> State {
    let folders: Vec<_> = KINDS.iter().map(|kind| format!("{} ({})", kind.folder, kind.program)).collect();
    State::ByHand {
        why: format!("no store of a known kind is here: {}", folders.join(", ")),
        steps: vec![format!("add {} to what your system trusts", quoted(&stores.cert))],
    }
}

/// The login keychain, which macOS asks its owner about.
fn keychain(stores: &Stores, job: Job) -> Report {
    let keychain = stores.home.join("Library/Keychains/login.keychain-db");
    let place = keychain.display().to_string();
    let Some(security) = stores.tools.find("security") else { return Report::new("system", place, unknown(stores)) };
    let cert = stores.cert.display().to_string();
    let trusted = tool::run(&security, ["verify-cert", "-c", &cert, "-p", "ssl", "-L"]).is_ok();
    let add = ["add-trusted-cert", "-r", "trustRoot", "-p", "ssl", "-k", &place, &cert];
    let state = match job {
        Job::Install if !trusted => outcome(&security, &add, State::Trusted { now: true }),
        Job::Uninstall if trusted => {
            outcome(&security, &["remove-trusted-cert", &cert], State::Untrusted { now: true })
        }
        _ if trusted => State::Trusted { now: false },
        _ => State::Untrusted { now: false },
    };
    Report::new("system", place, state)
}

fn outcome(program: &Path, arguments: &[&str], done: State) -> State {
    match tool::run(program, arguments) {
        Ok(_) => done,
        Err(why) => {
            let words: Vec<_> = arguments.iter().map(|word| quoted(Path::new(word))).collect();
            State::ByHand { why, steps: vec![format!("{} {}", quoted(program), words.join(" "))] }
        }
    }
}
