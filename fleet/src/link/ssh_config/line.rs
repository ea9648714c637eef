//! One line of an ssh_config file, as ssh splits it: a keyword, then words, with quotes, escapes and comments.

/// A line that says something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// As written; keywords are compared without their case.
    pub(super) keyword: String,
    /// What follows it, or why that cannot be read.
    pub(super) words: Result<Vec<String>, &'static str>,
}

/// Splits a line; `None` for blanks and comments.
pub(super) fn split(text: &str) -> Option<Line> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let end = text.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(text.len());
    let (keyword, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    Some(Line { keyword: keyword.trim_matches('"').to_owned(), words: words(rest) })
}

fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        match rest.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => {}
        }
        let (mut word, mut quote) = (String::new(), None);
        while let Some(c) = rest.next() {
            match (c, quote) {
                ('\\', _) if rest.peek().is_some_and(|next| matches!(next, '"' | '\'' | '\\')) => {
                    word.extend(rest.next());
                }
                ('\\', None) if rest.peek() == Some(&' ') => word.extend(rest.next()),
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (c, None) if c.is_whitespace() => break,
                (c, _) => word.push(c),
            }
        }
        if quote.is_some() {
            return Err("has a quote that is not closed");
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Vec<String>) {
        let line = split(text).unwrap();
        (line.keyword, line.words.unwrap())
    }

    #[test]
    fn keyword_and_words_are_found_in_every_spelling() {
        let wanted = ("Port".to_owned(), vec!["2222".to_owned()]);
        for text in ["Port 2222", "  Port=2222", "Port = 2222 # comment", "\tPort\t\"2222\"", "Port  =2222\r"] {
            assert_eq!(read(text), wanted, "{text:?}");
        }
        assert_eq!(split("   # Port 1"), None);
        assert_eq!(split(""), None);
    }

    #[test]
    fn quotes_and_escapes_hold_a_word_together() {
        let (_, words) = read(r#"IdentityFile "/a b/c" 'd e' f\ g h\"i a#b #end"#);
        assert_eq!(words, ["/a b/c", "d e", "f g", "h\"i", "a#b"]);
        assert!(split("IdentityFile \"/a b").unwrap().words.is_err());
    }
}
