//! A command line as a POSIX shell would split it, without a shell: quotes and backslashes, and nothing else.

/// Splits `line` into words. What only a shell could do (`;`, `|`, `$`, wildcards, …) is refused by name.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => single(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err("the command ends in a backslash".into()),
            },
            '#' | '~' if word.is_none() => return Err(needs_shell(c)),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '\n' | '\r' | '\0' => {
                return Err(needs_shell(c));
            }
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

fn needs_shell(c: char) -> String {
    format!("{c:?} is for a shell, and the gate has none")
}

fn single(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    for c in rest {
        if c == '\'' {
            return Ok(());
        }
        word.push(c);
    }
    Err("a single quote is not closed".into())
}

fn double(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), String> {
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok(()),
            '$' | '`' => return Err(needs_shell(c)),
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(escaped @ ('$' | '`' | '"' | '\\')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            plain => word.push(plain),
        }
    }
    Err("a double quote is not closed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// What a real shell makes of it, one word a line.
    fn shell(line: &str) -> Vec<String> {
        let script = format!("for word in {line}\ndo printf '%s\\n' \"$word\"\ndone");
        let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn words_are_those_of_a_shell(line in r#"[ab/\\'" ]{1,12}"#) {
            if let Ok(words) = split(&line) && !words.is_empty() {
                prop_assert_eq!(words, shell(&line));
            }
        }
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[ -~]{0,10}", 1..5)) {
            let line: Vec<String> = words.iter().map(|w| format!("'{}'", w.replace('\'', r"'\''"))).collect();
            prop_assert_eq!(split(&line.join(" ")).unwrap(), words);
        }
    }

    #[test]
    fn what_needs_a_shell_is_refused_by_name() {
        for line in ["a; b", "a && b", "a | b", "a > b", "$HOME", "\"$HOME\"", "`a`", "a*", "a\nb", "~/x", "# x"] {
            assert!(split(line).unwrap_err().contains("is for a shell"), "{line:?}");
        }
        for line in ["'a", "\"a", "a\\"] {
            assert!(split(line).is_err(), "{line:?}");
        }
    }
}
