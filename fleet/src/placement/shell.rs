//! Shell text for hosts of any kind: POSIX `sh`, and what Linux and macOS both have.

/// A word in single quotes.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// As [`quoted`], unless the word needs none.
pub fn quoted_if_needed(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'=' | b'+');
    if !word.is_empty() && word.bytes().all(plain) { word.to_owned() } else { quoted(word) }
}

/// The whole of a script as one command line: whatever the login shell of the account is, `sh` reads the script.
pub fn command(script: &str) -> String {
    format!("/bin/sh -c {}", quoted(script))
}

/// Before every script that changes something. One at a time on a host: a command whose mover died may still be at work,
/// and the next one has to find it done. Descriptor 9 holds the lock; what is started gets none of it (`9>&-`).
pub fn alone(script: &str) -> String {
    format!(
        "(umask 077; mkdir -p \"$HOME/.stado/placement\") || exit 1\n\
         if command -v flock >/dev/null 2>&1; then\n\
         exec 9>\"$HOME/.stado/placement/host.lock\"\n\
         flock -w 120 9 || {{ echo 'another placement command is still at work on this host' >&2; exit 1; }}\n\
         fi\n{script}"
    )
}

/// A path as a word of a script: `~/` is the home directory of the account there.
pub fn path(path: &str) -> String {
    path.strip_prefix("~/").map_or_else(|| quoted(path), |rest| format!("\"$HOME\"/{}", quoted(rest)))
}

/// What a script said, for a sentence: its last lines, without what could steer a terminal.
pub fn last_words(said: &[u8]) -> String {
    const MOST: usize = 400;
    let text: String =
        String::from_utf8_lossy(said).chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let all = lines.join("; ");
    match all.char_indices().rev().nth(MOST) {
        Some((at, _)) => format!("…{}", all.get(at..).unwrap_or_default()),
        None if all.is_empty() => "it said nothing".to_owned(),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_and_steers_no_terminal() {
        assert_eq!(last_words(b"\x1b[2Jone\n\n two \n"), "?[2Jone; two");
        assert_eq!(last_words(b" \n"), "it said nothing");
        let long = last_words("é".repeat(1000).as_bytes());
        assert!(long.starts_with('…') && long.chars().count() < 410, "{long}");
    }

    #[test]
    fn any_script_is_one_word_of_a_command_line() {
        let line = command("echo 'a b' \"$0\" | tr a-z A-Z");
        let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "A B /BIN/SH\n");
    }

    #[test]
    fn scripts_that_change_something_take_turns_and_what_they_start_does_not_hold_the_turn() {
        let home = tempfile::tempdir().unwrap();
        let sh = |script: &str| {
            std::process::Command::new("/bin/sh")
                .args(["-c", &alone(script)])
                .env("HOME", home.path())
                .output()
                .unwrap()
        };
        let first = sh("sleep 1000 >/dev/null 2>&1 9>&- & echo $!");
        let pid = String::from_utf8_lossy(&first.stdout).trim().to_owned();
        let second = sh(&format!("kill {pid}"));
        assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    }
}
