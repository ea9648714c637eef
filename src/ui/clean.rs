//! Text that other programs and other hosts wrote, made fit to be shown: it can neither steer a terminal nor pass for
//! something else.

/// Whether a character steers how text is shown, or hides in it: controls, line separators, directional overrides, and what
/// has no width.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn push(to: &mut String, c: char) {
    if steers(c) { to.extend(c.escape_default()) } else { to.push(c) }
}

/// One line: line ends and tabs are escaped too.
pub fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut shown, c));
    shown
}

/// As [`line`], for bytes: what is no text shows as `\x9b`.
pub fn bytes_line(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(&mut shown, c));
        chunk.invalid().iter().for_each(|b| shown.push_str(&format!("\\x{b:02x}")));
    }
    shown
}

/// Many lines: line ends and tabs stay, and a carriage return that only ends a line goes.
pub fn lines(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for (at, part) in bytes.split(|b| *b == b'\n').enumerate() {
        if at > 0 {
            shown.push('\n');
        }
        for (at, field) in part.strip_suffix(b"\r").unwrap_or(part).split(|b| *b == b'\t').enumerate() {
            if at > 0 {
                shown.push('\t');
            }
            shown.push_str(&bytes_line(field));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_steers_a_terminal_is_shown_instead_of_done() {
        assert_eq!(line("\u{1b}[2J\u{1b}]0;title\u{7}"), "\\u{1b}[2J\\u{1b}]0;title\\u{7}");
        assert_eq!(line("one\r\ntwo\tthree"), "one\\r\\ntwo\\tthree");
        assert_eq!(line("\u{9b}31m\u{7f}\u{0}"), "\\u{9b}31m\\u{7f}\\u{0}");
        assert_eq!(line("a\u{202e}b\u{2066}c\u{200b}d\u{feff}"), "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}");
        assert_eq!(line("zażółć 日本 👩‍💻"), "zażółć 日本 👩‍💻", "people's text stays");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_bytes() {
        assert_eq!(bytes_line(b"a\x9b31m\xffb"), "a\\x9b31m\\xffb");
    }

    #[test]
    fn lines_and_columns_stay_and_nothing_goes_back_over_a_line() {
        assert_eq!(lines(b"a\tb\r\nsafe\revil\r\n\n"), "a\tb\nsafe\\revil\n\n");
        assert_eq!(lines(b"\x1bc"), "\\u{1b}c");
        assert_eq!(lines(b""), "");
    }

    proptest! {
        #[test]
        fn nothing_that_steers_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..200), text: String) {
            prop_assert!(!bytes_line(&bytes).chars().any(steers));
            prop_assert!(!line(&text).chars().any(steers));
            prop_assert!(lines(&bytes).chars().all(|c| matches!(c, '\n' | '\t') || !steers(c)));
        }

        #[test]
        fn plain_text_is_left_alone(text in "[ -~]{0,80}") {
            prop_assert_eq!(&line(&text), &text);
            prop_assert_eq!(&lines(text.as_bytes()), &text);
        }
    }
}
