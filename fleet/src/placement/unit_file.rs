//! Unit files, written from `declaration.run` where a host has none.
use super::{Manager, Run, Unit};
use std::fmt::Write;

/// The line by which a file is known to be of a transaction.
pub fn mark(transaction: &str) -> String {
    format!("written by Stado for placement transaction {transaction}")
}

/// Where the file of a unit is, and what is in it; `None` for units without one.
pub fn of(unit: &Unit, run: &Run, transaction: &str) -> Option<(String, String)> {
    let place = |directory: &str| unit.path.clone().unwrap_or_else(|| format!("{directory}/{}", unit.unit));
    match &unit.manager {
        Manager::Systemd => Some((place("/etc/systemd/system"), systemd(unit, run, "multi-user.target", transaction))),
        Manager::SystemdUser => {
            Some((place("~/.config/systemd/user"), systemd(unit, run, "default.target", transaction)))
        }
        Manager::Launchd { .. } => Some((unit.path.clone()?, launchd(unit, run, transaction))),
        Manager::Commands(_) => None,
    }
}

fn systemd(unit: &Unit, run: &Run, wanted_by: &str, transaction: &str) -> String {
    let words: Vec<String> = std::iter::once(&run.program).chain(&run.args).map(|word| argument(word)).collect();
    let mut environment = String::new();
    for (name, value) in &run.env {
        let _ = writeln!(environment, "Environment={}", assignment(&format!("{name}={value}")));
    }
    format!(
        "# {}\n[Unit]\nDescription={} (placed by Stado)\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nExecStart={}\n{environment}Restart=on-failure\n\n[Install]\nWantedBy={wanted_by}\n",
        mark(transaction),
        unit.service,
        words.join(" ")
    )
}

/// One word of a command line in systemd's own quoting: specifiers, variables and escapes stand for themselves.
fn argument(word: &str) -> String {
    assignment(word).replace('$', "$$")
}

fn assignment(word: &str) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

fn launchd(unit: &Unit, run: &Run, transaction: &str) -> String {
    let string = |text: &str| format!("<string>{}</string>", xml(text));
    let arguments: String = std::iter::once(&run.program).chain(&run.args).map(|word| string(word)).collect();
    let environment: String =
        run.env.iter().map(|(name, value)| format!("<key>{}</key>{}", xml(name), string(value))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {} -->\n<plist version=\"1.0\"><dict>\n<key>Label</key>{}\n\
         <key>ProgramArguments</key><array>{arguments}</array>\n\
         <key>EnvironmentVariables</key><dict>{environment}</dict>\n\
         <key>RunAtLoad</key><true/>\n\
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n</dict></plist>\n",
        mark(transaction),
        string(&unit.unit)
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
