//! Pages over the lists: the story of an item, and the help. Pure.
use super::columns::wide_of;
use super::draw::Scene;
use super::pen::{Pen, Tone};
use super::story;
use super::view::{Item, Page, View};
use crate::ui::wrapped;

/// Width of the labels.
const LABEL: usize = 12;

/// A page over the lists.
pub(super) fn page_of(pen: &mut Pen<'_>, view: &mut View, page: &Page, scene: &Scene<'_>) {
    let (title, lines) = match page {
        Page::Help => ("Keys".to_owned(), HELP.iter().map(|(key, text)| (*key, (*text).to_owned())).collect()),
        Page::Story(panel, key) => match View::item(*panel, key, scene.picture) {
            Some(item) => (named(item), story::story(item, scene.picture, scene.connections, scene.now)),
            None => ("It is gone".to_owned(), vec![("", "What was shown here is not there any more.".to_owned())]),
        },
    };
    pen.line(0, &title, Tone::Head);
    let width = usize::from(pen.area.width);
    let text = |(label, text): &story::Line| wrapped_under(label, text, width);
    let lines: Vec<(String, String)> = lines.iter().flat_map(text).collect();
    let height = usize::from(pen.area.height.saturating_sub(2));
    view.height = height.max(1);
    view.scroll = view.scroll.min(lines.len().saturating_sub(height));
    for (y, (label, text)) in (2..).zip(lines.iter().skip(view.scroll).take(height)) {
        let x = pen.put((0, y), label, LABEL, Tone::Quiet);
        pen.put((if label.is_empty() { indent(width) } else { x.max(LABEL) }, y), text, usize::MAX, Tone::Plain);
    }
    let hidden = lines.len().saturating_sub(view.scroll + height);
    if hidden > 0 {
        pen.put_right(0, wide_of(&title), &format!("{hidden} more lines"), Tone::Quiet);
    }
}

/// Where text begins that has no label: narrow terminals have no room for an empty column.
fn indent(width: usize) -> usize {
    if width < 4 * LABEL { 2 } else { LABEL }
}

/// A labelled sentence on lines of their own.
fn wrapped_under(label: &str, text: &str, width: usize) -> Vec<(String, String)> {
    let indent = indent(width);
    let room = width.saturating_sub(indent).max(1);
    let first = if label.is_empty() { 0 } else { LABEL - indent };
    // The first line may begin further to the right.
    let lines = wrapped(&format!("{}{text}", " ".repeat(first)), 0, room);
    let label = |at: usize| if at == 0 { label.to_owned() } else { String::new() };
    lines.into_iter().enumerate().map(|(at, line)| (label(at), line.trim_start().to_owned())).collect()
}

fn named(item: Item<'_>) -> String {
    match item {
        Item::Route(row) => row.title.clone(),
        Item::Wait(wait) => format!("A wait of {}", wait.title),
        Item::Session(session) => format!("The session to {}", session.link.host),
        Item::Trouble(trouble) => trouble.about.clone(),
    }
}

const HELP: [(&str, &str); 17] = [
    ("Up Down", "move, also k and j; PgUp PgDn by a screen, Home End to the ends, also g and G"),
    ("Enter", "the story of what is chosen: since when, where and why it failed last, who waits and is connected"),
    ("/", "show only what has these words: in its name, state, address, host or reason; Esc shows all again"),
    ("s", "sort routes by the next column; the first order is the worst first"),
    ("r", "reverse the order"),
    ("c", "copy the address, through the terminal (OSC 52): also from a host that is reached over SSH"),
    ("o", "open the address in a browser, if it is one of the web"),
    ("Tab", "the next list, also 1 to 4: routes, waits, sessions, troubles"),
    ("q", "quit; on a page, back. Ctrl-C quits from everywhere, Ctrl-Z goes to the shell until `fg`"),
    ("", ""),
    ("NEW/S", "requests that came in a second, or connections where there are no requests"),
    ("UP DOWN", "bytes a second to the service and from it"),
    ("WAIT", "how long the oldest connection has had no answer"),
    ("TRIP", "there and back to the other host, in its SSH session"),
    ("failing", "the last try failed, and none has worked since that this view saw"),
    ("unavailable", "nobody stands behind the address now; it stays bound for whoever comes back"),
    ("unserved", "the address cannot be offered; the reason says what to do"),
];
