//! Sentences on lines of a width.

/// A line cut at spaces; what goes on is indented. A word that is longer than a line has one of its own.
pub fn wrapped(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let start = text.len() - text.trim_start().len();
    let mut line = " ".repeat(start);
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sentence_is_wrapped_under_itself() {
        let lines = wrapped(&format!("  ! fleet: {}", "word ".repeat(40)), 4, 96);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 96), "{lines:#?}");
        assert!(lines[0].starts_with("  ! fleet: word") && lines[1].starts_with("    word"));
    }
}
