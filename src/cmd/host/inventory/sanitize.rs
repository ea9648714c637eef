//! What a host said, made fit for a report: nothing steers the terminal that shows it, and nothing is longer than a line.
use crate::ui::clean;
use std::cell::Cell;

/// Characters that are kept of one text (fleet contract §6.13).
const LONGEST: usize = 200;

/// Takes texts, and remembers whether one had to be changed.
#[derive(Debug, Default)]
pub(super) struct Sanitizer {
    changed: Cell<bool>,
}

impl Sanitizer {
    /// One text.
    pub(super) fn text(&self, said: &str) -> String {
        let shown = clean::line(said);
        let kept: String = shown.chars().take(LONGEST).collect();
        if kept != said {
            self.changed.set(true);
        }
        kept
    }

    /// `clean` when everything was said as it is told, else `sanitized`.
    pub(super) fn state(&self) -> &'static str {
        if self.changed.get() { "sanitized" } else { "clean" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_and_cut_and_that_is_told() {
        let sanitizer = Sanitizer::default();
        assert_eq!((sanitizer.text("http://127.0.0.1:80"), sanitizer.state()), ("http://127.0.0.1:80".into(), "clean"));
        assert_eq!((sanitizer.text("a\u{1b}[31m"), sanitizer.state()), ("a\\u{1b}[31m".into(), "sanitized"));
        assert_eq!(Sanitizer::default().text(&"ż".repeat(201)).chars().count(), 200);
    }
}
