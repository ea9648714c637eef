//! The databases of Firefox, Chromium and their relatives, one a profile.
use super::{Job, Report, State, Stores, quoted, tool};
use std::path::{Path, PathBuf};

/// Where browsers keep their profiles, below the home directory; the databases are in these folders or one below.
const PLACES: [&str; 8] = [
    ".pki/nssdb",
    "snap/chromium/current/.pki/nssdb",
    ".mozilla/firefox",
    ".config/mozilla/firefox",
    "snap/firefox/common/.mozilla/firefox",
    ".var/app/org.mozilla.firefox/.mozilla/firefox",
    ".librewolf",
    "Library/Application Support/Firefox/Profiles",
];
/// Browsers that use the first place, and make it at their first start only.
const CHROMIUM: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "brave-browser"];

pub(super) fn run(stores: &Stores, job: Job) -> Vec<Report> {
    let first = stores.home.join(".pki/nssdb");
    let mut databases = databases(&stores.home);
    let chromium = CHROMIUM.iter().any(|name| stores.tools.find(name).is_some());
    let make = job == Job::Install && chromium && !databases.contains(&first);
    if make {
        databases.push(first.clone());
    }
    if databases.is_empty() {
        return vec![Report::new("nss", stores.home.display().to_string(), State::Absent)];
    }
    let Some(certutil) = stores.tools.find("certutil") else {
        return databases.iter().map(|at| report(at, without_tool(stores, at))).collect();
    };
    if make && let Err(why) = create(&certutil, &first) {
        let steps = vec![format!("certutil -N --empty-password -d {}", database(&first))];
        return vec![report(&first, State::ByHand { why, steps })];
    }
    databases.iter().map(|at| report(at, one(stores, &certutil, at, job))).collect()
}

/// Every folder with a database in it.
fn databases(home: &Path) -> Vec<PathBuf> {
    let has = |dir: &PathBuf| dir.join("cert9.db").is_file();
    let mut found = Vec::new();
    for place in PLACES.map(|place| home.join(place)) {
        let below = std::fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> = below.filter(has).collect();
        all.sort();
        found.extend(Some(place).filter(has).into_iter().chain(all));
    }
    found
}

fn one(stores: &Stores, certutil: &Path, at: &Path, job: Job) -> State {
    let (database, cert) = (database(at), stores.cert.display().to_string());
    let there = tool::run(certutil, ["-L", "-d", &database, "-n", &stores.mark]).is_ok();
    let arguments: &[&str] = match job {
        Job::Install if !there => &["-A", "-d", &database, "-n", &stores.mark, "-t", "C,,", "-i", &cert],
        Job::Uninstall if there => &["-D", "-d", &database, "-n", &stores.mark],
        _ if there => return State::Trusted { now: false },
        _ => return State::Untrusted { now: false },
    };
    match tool::run(certutil, arguments) {
        Ok(_) if job == Job::Install => State::Trusted { now: true },
        Ok(_) => State::Untrusted { now: true },
        // A database with a password asks for it: that is a person's to type.
        Err(why) => {
            let words: Vec<_> = arguments.iter().map(|word| quoted(Path::new(word))).collect();
            State::ByHand { why, steps: vec![format!("certutil {}", words.join(" "))] }
        }
    }
}

fn create(certutil: &Path, at: &Path) -> Result<(), String> {
    stado_fleet::disk::private_dir(at).map_err(|error| error.to_string())?;
    tool::run(certutil, ["-N", "--empty-password", "-d", &database(at)]).map(|_| ())
}

fn without_tool(stores: &Stores, at: &Path) -> State {
    let again =
        "certutil is not here; install it and run `stado tls trust` again, or import the authority in the browser";
    let steps = vec![
        "Debian: sudo apt-get install libnss3-tools. Fedora: sudo dnf install nss-tools. macOS: brew install nss"
            .to_owned(),
        format!(
            "Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import {}",
            quoted(&stores.cert)
        ),
        format!("the database is {}", at.display()),
    ];
    State::ByHand { why: again.to_owned(), steps }
}

fn database(at: &Path) -> String {
    format!("sql:{}", at.display())
}

fn report(at: &Path, state: State) -> Report {
    Report::new("nss", at.display().to_string(), state)
}
