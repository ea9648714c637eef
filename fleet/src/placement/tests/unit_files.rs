//! Unit files, judged by the programs that read them.
use crate::placement::{Run, Unit, shell, unit_file, units};
use serde_json::json;
use std::process::Command;

const ID: &str = "67e55044-10b1-426f-9247-bb680e5fe0c8";

fn run() -> Run {
    Run {
        program: "/bin/echo".into(),
        args: ["100%", "a \"b\" $HOME", "back\\slash", "<&>"].map(str::to_owned).into(),
        env: [("GREETING".to_owned(), "hello 50% \"you\"".to_owned())].into(),
    }
}

fn unit(kind: &str, unit: &str, path: &str) -> Unit {
    Unit::read("notes", "a", &json!({"name": "notes", "unit": unit, "kind": kind, "path": path})).unwrap()
}

/// Prints why a check is left out.
fn missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED, needs {program}");
    }
    !found
}

#[test]
fn systemd_takes_the_units_that_are_written_for_it() {
    let (file, text) = unit_file::of(&unit("systemd", "notes.service", ""), &run(), ID).unwrap();
    assert_eq!(file, "/etc/systemd/system/notes.service");
    assert!(text.starts_with(&format!("# {}\n", unit_file::mark(ID))), "{text}");
    assert!(text.contains(r#"ExecStart="/bin/echo" "100%%" "a \"b\" $$HOME" "back\\slash" "<&>""#), "{text}");
    assert!(text.contains(r#"Environment="GREETING=hello 50%% \"you\"""#), "{text}");
    let (user_file, user_text) = unit_file::of(&unit("systemd-user", "notes.service", ""), &run(), ID).unwrap();
    assert_eq!(user_file, "~/.config/systemd/user/notes.service");
    if missing("systemd-analyze") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let verify = |text: &str, manager: &str| {
        let file = dir.path().join("notes.service");
        std::fs::write(&file, text).unwrap();
        let output = Command::new("systemd-analyze")
            .args(["verify", manager])
            .arg(&file)
            .env("XDG_RUNTIME_DIR", dir.path())
            .output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(verify(&text, "--system"), (true, String::new()));
    assert_eq!(verify(&user_text, "--user"), (true, String::new()));
    assert!(!verify(&text.replace("/bin/echo", "/no/such/program"), "--system").0, "it does judge");
}

#[test]
fn a_property_list_says_what_was_declared() {
    let daemon = unit("launchd", "com.example.notes", "/Library/LaunchDaemons/com.example.notes.plist");
    let (file, text) = unit_file::of(&daemon, &run(), ID).unwrap();
    assert_eq!(file, "/Library/LaunchDaemons/com.example.notes.plist");
    assert!(text.contains(&unit_file::mark(ID)) && text.contains("<string>&lt;&amp;&gt;</string>"), "{text}");
    if missing("python3") {
        return;
    }
    let script = "import plistlib,sys,json; print(json.dumps(plistlib.loads(sys.argv[1].encode())))";
    let output = Command::new("python3").args(["-c", script, &text]).output().unwrap();
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        read,
        json!({
            "Label": "com.example.notes", "ProgramArguments": ["/bin/echo", "100%", "a \"b\" $HOME", "back\\slash", "<&>"],
            "EnvironmentVariables": {"GREETING": "hello 50% \"you\""}, "RunAtLoad": true, "KeepAlive": {"SuccessfulExit": false}
        })
    );
}

/// A home whose `bin` has service managers that write down what they were told.
struct Told(tempfile::TempDir);

impl Told {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("bin")).unwrap();
        for name in ["systemctl", "launchctl", "sudo"] {
            let file = home.path().join("bin").join(name);
            let asks = "case \"$*\" in *is-active*) cat \"$HOME/state\"; exit 3 ;; cat\\ *|*\\ cat\\ *|print\\ *) [ -e \"$HOME/there\" ]; exit $? ;; esac";
            let body = if name == "sudo" { "shift; exec \"$@\"" } else { asks };
            let text = format!("#!/bin/sh\n[ {name} = sudo ] || echo \"{name} $*\" >>\"$HOME/told\"\n{body}\n");
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(home.path().join("state"), "inactive\n").unwrap();
        Self(home)
    }

    fn there(&self) {
        std::fs::write(self.0.path().join("there"), "").unwrap();
    }

    /// What the managers were told by a script that has to succeed.
    #[track_caller]
    fn by(&self, script: &str) -> Vec<String> {
        let path = format!("{}:/usr/bin:/bin", self.0.path().join("bin").display());
        let mut sh = Command::new("/bin/sh");
        let output =
            sh.args(["-c", &shell::alone(script)]).env("HOME", self.0.path()).env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = self.0.path().join("told");
        let told = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        told.lines().map(str::to_owned).collect()
    }
}

#[test]
fn systemd_is_told_to_stop_whatever_it_thinks_and_to_start_and_enable() {
    let told = Told::new();
    told.there();
    let service = [unit("systemd", "notes.service", "")];
    let stopped = ["systemctl cat notes.service", "systemctl stop notes.service", "systemctl is-active notes.service"];
    assert_eq!(told.by(&units::stop(&service)), stopped);
    assert_eq!(told.by(&units::start(&service)), ["systemctl start notes.service"]);
    assert_eq!(told.by(&units::enable(&service)), ["systemctl enable --quiet notes.service"]);
    let disabled = ["systemctl cat notes.service", "systemctl disable --quiet notes.service"];
    assert_eq!(told.by(&units::disable(&service)), disabled);
    let user = [unit("systemd-user", "notes.service", "")];
    assert_eq!(told.by(&units::start(&user)), ["systemctl --user start notes.service"]);
}

#[test]
fn a_unit_file_is_written_where_there_is_none_and_only_its_writer_removes_it() {
    let told = Told::new();
    let user = unit("systemd-user", "notes.service", "");
    let file = told.0.path().join(".config/systemd/user/notes.service");
    assert_eq!(
        told.by(&units::write_file(&user, &run(), ID)),
        ["systemctl --user cat notes.service", "systemctl --user daemon-reload"]
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), unit_file::of(&user, &run(), ID).unwrap().1);
    told.by(&units::remove_file(&user, &run(), "another"));
    assert!(file.exists());
    told.by(&units::remove_file(&user, &run(), ID));
    assert!(!file.exists());
    told.there();
    told.by(&units::write_file(&user, &run(), ID));
    assert!(!file.exists(), "one that is there is left alone");
}

#[test]
fn launchd_is_told_by_domain_and_label() {
    let told = Told::new();
    let agent = [unit("launchd", "notes", "~/Library/LaunchAgents/notes.plist")];
    let id = Command::new("id").arg("-u").output().unwrap();
    let domain = format!("gui/{}", String::from_utf8(id.stdout).unwrap().trim());
    let plist = told.0.path().join("Library/LaunchAgents/notes.plist");
    assert_eq!(
        told.by(&units::start(&agent)),
        [
            format!("launchctl print {domain}/notes"),
            format!("launchctl bootstrap {domain} {}", plist.display()),
            format!("launchctl kickstart {domain}/notes")
        ]
    );
    let daemon = [unit("launchd", "notes", "/Library/LaunchDaemons/notes.plist")];
    assert_eq!(told.by(&units::enable(&daemon)), ["launchctl enable system/notes"]);
    assert_eq!(
        told.by(&units::stop(&daemon)),
        ["launchctl print system/notes"],
        "one that is not there is not stopped"
    );
    std::fs::create_dir_all(plist.parent().unwrap()).unwrap();
    std::fs::write(&plist, "").unwrap();
    let stopped = [format!("launchctl print {domain}/notes"), format!("launchctl print {domain}/notes")];
    assert_eq!(told.by(&units::stop(&agent)), stopped, "one that is not loaded need not be");
}
