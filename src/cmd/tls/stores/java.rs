//! Java's key store of authorities, whose password is the same on every machine.
use super::{Job, Report, State, Stores, quoted, tool};
use std::path::{Path, PathBuf};

/// Java's own default; it protects nothing, since the store holds no secret.
const PASSWORD: &str = "changeit";

pub(super) fn run(stores: &Stores, job: Job) -> Report {
    let Some(keytool) = stores.tools.keytool() else {
        return Report::new("java", "no keytool on the PATH or in JAVA_HOME", State::Absent);
    };
    let store = stores.keystore.clone().or_else(|| own(&keytool));
    let Some(store) = store else {
        return Report::new("java", keytool.display().to_string(), State::Absent);
    };
    let place = store.display().to_string();
    let arguments = |verb: &str| {
        let words = [verb, "-keystore", &place, "-storepass", PASSWORD, "-alias", &stores.mark];
        words.map(str::to_owned).to_vec()
    };
    let there = tool::run(&keytool, arguments("-list")).is_ok();
    let arguments = match job {
        Job::Install if !there => {
            let cert = stores.cert.display().to_string();
            [arguments("-importcert"), ["-noprompt".into(), "-trustcacerts".into(), "-file".into(), cert].to_vec()]
                .concat()
        }
        Job::Uninstall if there => arguments("-delete"),
        _ if there => return Report::new("java", place, State::Trusted { now: false }),
        _ => return Report::new("java", place, State::Untrusted { now: false }),
    };
    let state = match tool::run(&keytool, &arguments) {
        Ok(_) if job == Job::Install => State::Trusted { now: true },
        Ok(_) => State::Untrusted { now: true },
        Err(why) => {
            let words: Vec<_> = arguments.iter().map(|word| quoted(Path::new(word))).collect();
            State::ByHand { why, steps: vec![format!("sudo {} {}", quoted(&keytool), words.join(" "))] }
        }
    };
    Report::new("java", place, state)
}

/// `lib/security/cacerts` beside the program's own folder.
fn own(keytool: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(keytool).ok()?;
    let home = real.parent()?.parent()?;
    ["lib/security/cacerts", "jre/lib/security/cacerts"].iter().map(|below| home.join(below)).find(|file| file.exists())
}
