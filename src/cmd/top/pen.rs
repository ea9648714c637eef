//! Writes on lines of cells, in the tones of the view.
use super::columns::{cut, wide_of};
use crate::ui::clean;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// What a colour is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Head,
    Bad,
    Doubtful,
    Good,
    Quiet,
    Chosen,
}

/// Lines of an area, from the top.
pub(super) struct Pen<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) area: Rect,
    pub(super) colour: bool,
}

impl Pen<'_> {
    fn style(&self, tone: Tone) -> Style {
        let (colour, modifier) = match tone {
            Tone::Plain => (None, Modifier::empty()),
            Tone::Head => (None, Modifier::BOLD),
            Tone::Bad => (Some(Color::Red), Modifier::BOLD),
            Tone::Doubtful => (Some(Color::Yellow), Modifier::empty()),
            Tone::Good => (Some(Color::Green), Modifier::empty()),
            Tone::Quiet => (None, Modifier::DIM),
            Tone::Chosen => (None, Modifier::REVERSED),
        };
        let style = Style::new().add_modifier(modifier);
        colour.filter(|_| self.colour).map_or(style, |colour| style.fg(colour))
    }

    /// Writes at a column of a line what fits into `width`; where it ends.
    pub(super) fn put(&mut self, (x, y): (usize, u16), text: &str, width: usize, tone: Tone) -> usize {
        let room = usize::from(self.area.width).saturating_sub(x).min(width);
        if y >= self.area.height || room == 0 {
            return x;
        }
        // What steers a terminal, or hides in a text, is shown and not done.
        let text = cut(&clean::line(text), room, false);
        let style = self.style(tone);
        let column = self.area.x.saturating_add(u16::try_from(x).unwrap_or(u16::MAX));
        self.buffer.set_stringn(column, self.area.y + y, &text, room, style);
        x + wide_of(&text)
    }

    /// Writes at the right end of a line, if there is room beside what ends at `taken`.
    pub(super) fn put_right(&mut self, y: u16, taken: usize, text: &str, tone: Tone) {
        let (width, all) = (wide_of(text), usize::from(self.area.width));
        if taken + 2 + width <= all {
            self.put((all - width, y), text, width, tone);
        }
    }

    pub(super) fn line(&mut self, y: u16, text: &str, tone: Tone) {
        self.put((0, y), text, usize::MAX, tone);
    }

    /// Reverses a whole line, so that the one that is chosen shows without colours.
    pub(super) fn choose(&mut self, y: u16) {
        let line = Rect { x: self.area.x, y: self.area.y + y, width: self.area.width, height: 1 };
        self.buffer.set_style(line.intersection(self.area), self.style(Tone::Chosen).fg(Color::Reset));
    }
}
