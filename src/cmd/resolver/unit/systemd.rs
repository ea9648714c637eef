//! A service of systemd: pure. It is `Type=notify`, so that it counts as started once it serves, and has a watchdog.
use super::{MARK, Unit};
use crate::exit::Failure;

/// The unit. A start may take as long as the first directory takes to come; the daemon says meanwhile what it waits for.
pub(super) fn text(unit: &Unit) -> Result<String, Failure> {
    let command = unit.command.iter().map(|word| quoted(word, true)).collect::<Result<Vec<_>, _>>()?.join(" ");
    // An account's own manager knows no network.
    let after = if unit.account.is_some() { "After=network.target\n" } else { "" };
    let mut text = format!(
        "# {MARK}\n\
         [Unit]\n\
         Description=Stado: connect by name\n\
         {after}\n\
         [Service]\n\
         Type=notify\n\
         NotifyAccess=main\n\
         ExecStart={command}\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         TimeoutStartSec=infinity\n\
         WatchdogSec=60\n"
    );
    for (name, value) in &unit.variables {
        text.push_str(&format!("Environment={}\n", quoted(&format!("{name}={value}"), false)?));
    }
    match &unit.account {
        Some(account) => text.push_str(&format!("User={}\nWorkingDirectory=~\n", plain(account)?)),
        None => {
            let logs = unit.home.join(".stado/logs");
            let logs = specified(&plain(&logs.to_string_lossy())?);
            text.push_str(&format!(
                "StandardOutput=append:{logs}/stado-resolver.out\nStandardError=append:{logs}/stado-resolver.err\n"
            ));
        }
    }
    let wanted_by = if unit.account.is_some() { "multi-user.target" } else { "default.target" };
    text.push_str(&format!("\n[Install]\nWantedBy={wanted_by}\n"));
    Ok(text)
}

/// One word: in double quotes, with what systemd would read in it doubled or escaped. Only commands have `$`.
fn quoted(word: &str, command: bool) -> Result<String, Failure> {
    let mut out = specified(&plain(word)?.replace('\\', "\\\\").replace('"', "\\\""));
    if command {
        out = out.replace('$', "$$");
    }
    Ok(format!("\"{out}\""))
}

/// `%` begins a specifier.
fn specified(text: &str) -> String {
    text.replace('%', "%%")
}

fn plain(text: &str) -> Result<String, Failure> {
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(Failure::usage(format!("{text:?} cannot be put into a unit: it has the character {c:?}"))),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(account: Option<&str>) -> Unit {
        Unit {
            command: ["/opt/my tools/stado", "resolver", "serve", "--target", "a$b%c\"d\\e"].map(Into::into).into(),
            variables: vec![("STADO_TARGET".into(), "50% \"x\" $HOME".into())],
            account: account.map(Into::into),
            home: "/h/100%".into(),
        }
    }

    #[test]
    fn an_accounts_own_unit_is_as_the_contract_has_it_and_quotes_what_systemd_would_read() {
        let text = text(&unit(None)).unwrap();
        let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        has("Type=notify");
        has("Restart=on-failure");
        has("RestartSec=5");
        has("WantedBy=default.target");
        has(r#"ExecStart="/opt/my tools/stado" "resolver" "serve" "--target" "a$$b%%c\"d\\e""#);
        has(r#"Environment="STADO_TARGET=50%% \"x\" $HOME""#);
        has("StandardOutput=append:/h/100%%/.stado/logs/stado-resolver.out");
        has("StandardError=append:/h/100%%/.stado/logs/stado-resolver.err");
        assert!(text.starts_with("# Written by `stado resolver install`") && !text.contains("User="));
    }

    #[test]
    fn the_machines_unit_names_the_account_and_leaves_the_log_to_the_journal() {
        let text = text(&unit(Some("ann"))).unwrap();
        assert!(text.contains("\nUser=ann\n") && text.contains("\nWantedBy=multi-user.target\n"), "{text}");
        assert!(!text.contains("StandardOutput"), "{text}");
    }

    #[test]
    fn what_would_end_a_line_is_refused() {
        let bad = Unit { variables: vec![("A".into(), "x\nExecStartPre=/bin/evil".into())], ..unit(None) };
        assert!(text(&bad).unwrap_err().message.contains("cannot be put into a unit"));
    }
}
