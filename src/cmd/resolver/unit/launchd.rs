//! A job of launchd: pure.
use super::place::LABEL;
use super::{MARK, Unit};
use crate::exit::Failure;

/// The property list.
pub(super) fn text(unit: &Unit) -> Result<String, Failure> {
    let mut body = String::new();
    put(&mut body, "Label", &string(LABEL)?);
    let words = unit.command.iter().map(|word| string(word)).collect::<Result<Vec<_>, _>>()?;
    put(&mut body, "ProgramArguments", &format!("<array>{}</array>", words.concat()));
    if !unit.variables.is_empty() {
        let pairs = unit.variables.iter().map(|(name, value)| Ok(key(name)? + &string(value)?));
        let pairs = pairs.collect::<Result<Vec<_>, Failure>>()?;
        put(&mut body, "EnvironmentVariables", &format!("<dict>{}</dict>", pairs.concat()));
    }
    if let Some(account) = &unit.account {
        put(&mut body, "UserName", &string(account)?);
        put(&mut body, "WorkingDirectory", &string(&unit.home.to_string_lossy())?);
    }
    put(&mut body, "RunAtLoad", "<true/>");
    put(&mut body, "KeepAlive", "<dict><key>SuccessfulExit</key><false/></dict>");
    put(&mut body, "ThrottleInterval", "<integer>5</integer>");
    // launchd makes the files, and no directory; an account's own is made by the installation.
    let logs = if unit.account.is_some() { "/Library/Logs".into() } else { unit.home.join(".stado/logs") };
    for (name, file) in [("StandardOutPath", "stado-resolver.out"), ("StandardErrorPath", "stado-resolver.err")] {
        put(&mut body, name, &string(&logs.join(file).to_string_lossy())?);
    }
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- {MARK} -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n{body}</dict>\n</plist>\n"
    ))
}

fn put(body: &mut String, name: &str, value: &str) {
    body.push_str(&format!("  <key>{name}</key>{value}\n"));
}

fn key(text: &str) -> Result<String, Failure> {
    Ok(format!("<key>{}</key>", escaped(text)?))
}

fn string(text: &str) -> Result<String, Failure> {
    Ok(format!("<string>{}</string>", escaped(text)?))
}

/// XML has no way to write most control characters.
fn escaped(text: &str) -> Result<String, Failure> {
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(Failure::usage(format!("{text:?} cannot be put into a unit: it has the character {c:?}"))),
        None => Ok(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_kept_alive_on_failure_and_its_words_are_escaped() {
        let unit = Unit {
            command: ["/opt/a&b/stado", "resolver", "serve"].map(Into::into).into(),
            variables: vec![("A".into(), "<x>".into())],
            account: None,
            home: "/Users/ann".into(),
        };
        let written = text(&unit).unwrap();
        for part in [
            "<key>Label</key><string>local.stado-resolver</string>",
            "<array><string>/opt/a&amp;b/stado</string><string>resolver</string><string>serve</string></array>",
            "<key>EnvironmentVariables</key><dict><key>A</key><string>&lt;x&gt;</string></dict>",
            "<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>",
            "<key>ThrottleInterval</key><integer>5</integer>",
            "<key>StandardErrorPath</key><string>/Users/ann/.stado/logs/stado-resolver.err</string>",
        ] {
            assert!(written.contains(part), "{part}\n{written}");
        }
        assert!(!written.contains("UserName"));
        let system = text(&Unit { account: Some("ann".into()), ..unit }).unwrap();
        assert!(system.contains("<key>UserName</key><string>ann</string>"));
    }
}
