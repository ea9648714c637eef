//! The view on a buffer of cells. Pure: what is drawn is the picture, the view and the time, and nothing else.
use super::columns::{self, Kind, cut, wide_of};
use super::page::page_of;
use super::pen::{Pen, Tone};
use super::picture::{Picture, Row, Session, State, Wait, sentence};
use super::story::{for_what, seconds};
use super::view::{Column, Item, Page, Panel, View};
use crate::cmd::age;
use crate::cmd::resolver::millis;
use crate::ui::{clean, wrapped};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use stado_fleet::wire::ConnectionList;
use std::time::Duration;

/// What else there is to know for a drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) picture: &'a Picture,
    /// Who is connected to the service whose page is open.
    pub(super) connections: Option<&'a ConnectionList>,
    pub(super) now: Timestamp,
    /// How long the daemon has been asked without an answer.
    pub(super) silent: Duration,
    /// Whether colours may be used.
    pub(super) colour: bool,
}

/// Silence that is worth a word.
const BLINK: Duration = Duration::from_millis(1500);
/// Waits and sessions that are shown beneath the routes.
const BENEATH: usize = 3;
/// Lines from which on there is room for them.
const TALL: u16 = 18;

/// Draws everything.
pub(super) fn draw(view: &mut View, scene: &Scene<'_>, buffer: &mut Buffer) {
    let area = buffer.area;
    if area.width == 0 || area.height == 0 {
        return;
    }
    let mut pen = Pen { buffer, area, colour: scene.colour };
    head(&mut pen, scene);
    let last = area.height - 1;
    if last == 0 {
        return;
    }
    foot(&mut pen, view, last);
    let top = if view.page.is_some() { 1 } else { tabs(&mut pen, view, scene) };
    let body = Rect { y: area.y + top, height: last.saturating_sub(top), ..area };
    let mut pen = Pen { buffer, area: body, colour: scene.colour };
    match view.page.clone() {
        Some(page) => page_of(&mut pen, view, &page, scene),
        None => lists(&mut pen, view, scene),
    }
}

fn head(pen: &mut Pen<'_>, scene: &Scene<'_>) {
    let Picture { headline, verdict, .. } = scene.picture;
    let tone = match *verdict {
        "ready" => Tone::Good,
        "degraded" | "down" => Tone::Bad,
        _ => Tone::Plain,
    };
    let text = if headline.is_empty() { "asking the daemon" } else { headline };
    let x = pen.put((0, 0), "stado top  ", usize::MAX, Tone::Head);
    let silence = match scene.silent > BLINK {
        true => format!("no answer for {}s", scene.silent.as_secs()),
        false => String::new(),
    };
    let room = usize::from(pen.area.width).saturating_sub(x + wide_of(&silence) + 2);
    let x = pen.put((x, 0), text, room, tone);
    pen.put_right(0, x, &silence, Tone::Doubtful);
}

/// The names of the lists; returns the line beneath.
fn tabs(pen: &mut Pen<'_>, view: &View, scene: &Scene<'_>) -> u16 {
    if pen.area.height < 4 {
        return 1;
    }
    let mut x = 0;
    for panel in Panel::ALL {
        let count = view.items(panel, scene.picture).len();
        let name = format!("{} {count}", panel.name());
        let (name, tone) = match panel == view.panel {
            true => (format!("[{name}]"), Tone::Head),
            false => (format!(" {name} "), Tone::Plain),
        };
        x = pen.put((x, 1), &name, usize::MAX, tone) + 1;
    }
    let filter = if view.filter.is_empty() { String::new() } else { format!("/{}  ", view.filter) };
    let order = match (view.panel, view.reversed) {
        (Panel::Routes, false) => format!("by {}", view.sort.name()),
        (Panel::Routes, true) => format!("by {}, reversed", view.sort.name()),
        _ => String::new(),
    };
    let text = format!("{filter}{order}");
    // The filter hides something: it is said even where there is no room for the order.
    let text = if x + 2 + wide_of(&text) > usize::from(pen.area.width) { filter } else { text };
    pen.put_right(1, x, text.trim_end(), Tone::Quiet);
    2
}

/// What the last key did, what is typed, or what keys there are.
fn foot(pen: &mut Pen<'_>, view: &View, y: u16) {
    if view.typing {
        let text = format!("filter: {}_   Enter keeps it, Esc drops it", view.filter);
        return pen.line(y, &text, Tone::Head);
    }
    if let Some(note) = &view.note {
        return pen.line(y, note, Tone::Head);
    }
    let keys = match (&view.page, view.filter.is_empty()) {
        (Some(Page::Help), _) => "Esc back  Up Down scroll  Ctrl-C quit",
        (Some(_), _) => "Esc back  c copy  o open in browser  Up Down scroll  Ctrl-C quit",
        (None, true) => "q quit  ? help  / filter  s sort  c copy  o open  Enter story  Tab next list",
        (None, false) => "q quit  ? help  Esc all  / filter  s sort  c copy  o open  Enter story",
    };
    pen.line(y, keys, Tone::Quiet);
}

fn lists(pen: &mut Pen<'_>, view: &mut View, scene: &Scene<'_>) {
    let top = banner(pen, scene);
    let items = view.items(view.panel, scene.picture);
    let (height, roomy) = (pen.area.height, pen.area.height + 3 >= TALL);
    let beneath = if roomy && view.panel == Panel::Routes { beneath(scene) } else { Vec::new() };
    let chosen = view.at(&items).and_then(|at| items.get(at)).copied();
    let why = chosen.and_then(why).filter(|_| height > 8);
    let taken = beneath.len() + usize::from(why.is_some());
    let bottom = height.saturating_sub(u16::try_from(taken).unwrap_or(height));
    table(pen, view, &items, scene, (top, bottom));
    let mut y = bottom;
    for (text, tone) in beneath {
        pen.line(y, &text, tone);
        y += 1;
    }
    if let Some(why) = why {
        pen.line(y, &why, Tone::Doubtful);
    }
}

/// Why no daemon answers, or the worst that has to be put right; returns the line beneath.
fn banner(pen: &mut Pen<'_>, scene: &Scene<'_>) -> u16 {
    let width = usize::from(pen.area.width);
    let most = usize::from(pen.area.height / 3);
    let lines = match (&scene.picture.down, scene.picture.troubles.first()) {
        (Some(down), _) => {
            let known = if scene.picture.routes.is_empty() { "" } else { " Below is what was known last." };
            wrapped(&format!("! {down} This view goes on asking.{known}"), 2, width)
        }
        (None, Some(worst)) if worst.severity == "fail" && pen.area.height > 8 => {
            vec![format!("! {}: {}", worst.about, sentence(worst))]
        }
        _ => Vec::new(),
    };
    let mut y = 0;
    for line in lines.iter().take(most) {
        pen.line(y, line, Tone::Bad);
        y += 1;
    }
    y
}

/// Why the chosen route does not work.
fn why(item: Item<'_>) -> Option<String> {
    match item {
        Item::Route(row) if row.state != State::Ready && !row.why.is_empty() => {
            Some(format!("{}: {}", row.title, row.why))
        }
        _ => None,
    }
}

/// The oldest waits and the sessions.
fn beneath(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let picture = scene.picture;
    let mut lines = Vec::new();
    let mut part = |title: &str, all: usize, shown: Vec<String>| {
        if all > 0 {
            let more = if all > shown.len() { format!("  {} more: Tab", all - shown.len()) } else { String::new() };
            lines.push((format!("{title}{more}"), Tone::Head));
            lines.extend(shown.into_iter().map(|text| (format!("  {text}"), Tone::Plain)));
        }
    };
    let waits = picture.waits.iter().take(BENEATH).map(|wait| {
        let client = wait.of.client.as_ref().map(|client| format!(", client {client}")).unwrap_or_default();
        format!("{}  {} {}{client}", wait.title, waited(wait, scene.now), for_what(wait))
    });
    part("WAITS", picture.waits.len(), waits.collect());
    let sessions = picture.sessions.iter().take(BENEATH).map(|session| {
        let [host, carrier, path, trip, streams, rest] = session_cells(session);
        format!("{host}  {carrier} over {path}  {trip}  {streams} streams  {rest}")
    });
    part("SESSIONS", picture.sessions.len(), sessions.collect());
    lines
}

fn waited(wait: &Wait, now: Timestamp) -> String {
    wait.since.map_or_else(|| "-".to_owned(), |since| age::span(seconds(since, now)))
}

/// Host, carrier, path, round trip, streams, and why it is not the multiplex.
fn session_cells(session: &Session) -> [String; 6] {
    let link = &session.link;
    let trip = link.rtt_us.map_or_else(|| "-".to_owned(), millis);
    let reason = link.reason.clone().unwrap_or_default();
    [link.host.clone(), link.carrier.clone(), link.path.clone(), trip, link.streams.to_string(), reason]
}

/// The list between two lines, under its heads.
fn table(pen: &mut Pen<'_>, view: &mut View, items: &[Item<'_>], scene: &Scene<'_>, (top, bottom): (u16, u16)) {
    let rows = usize::from(bottom.saturating_sub(top + 1));
    view.height = rows.max(1);
    let at = view.at(items);
    let first = match (view.cursor_mut(), at) {
        (Some(cursor), Some(at)) => {
            // The cursor is inside, and nothing below the list is shown while something above it is hidden.
            cursor.first = cursor.first.clamp((at + 1).saturating_sub(rows.max(1)), at);
            cursor.first = cursor.first.min(items.len().saturating_sub(rows));
            cursor.first
        }
        _ => 0,
    };
    if items.is_empty() {
        return nothing(pen, view, scene, top);
    }
    let grid = grid(view, items, scene, usize::from(pen.area.width).saturating_sub(2));
    let mut x = 2;
    for column in &grid.columns {
        let tone = if column.sorted { Tone::Head } else { Tone::Quiet };
        cell(pen, (x, top), column, column.head, tone);
        x += column.width + 1;
    }
    for (line, (n, item)) in items.iter().enumerate().skip(first).take(rows).enumerate() {
        let y = top + 1 + u16::try_from(line).unwrap_or(u16::MAX);
        let tone = tone_of(item);
        let mut x = 2;
        for (column, text) in grid.columns.iter().zip((grid.cells)(item)) {
            // In colour the state alone is coloured.
            let tone = if column.is_state { tone } else { Tone::Plain };
            cell(pen, (x, y), column, &text, tone);
            x += column.width + 1;
        }
        if at == Some(n) {
            pen.put((0, y), ">", 1, Tone::Head);
            pen.choose(y);
        }
    }
}

/// What stands in the columns for an item.
type Cells<'a> = Box<dyn Fn(&Item<'_>) -> Vec<String> + 'a>;

struct Grid<'a> {
    columns: Vec<GridColumn>,
    cells: Cells<'a>,
}

struct GridColumn {
    head: &'static str,
    width: usize,
    right: bool,
    keeps_end: bool,
    sorted: bool,
    is_state: bool,
}

fn grid<'a>(view: &View, items: &[Item<'_>], scene: &Scene<'a>, width: usize) -> Grid<'a> {
    let now = scene.now;
    if view.panel == Panel::Routes {
        let rows: Vec<&Row> =
            items.iter().filter_map(|item| if let Item::Route(row) = item { Some(*row) } else { None }).collect();
        let shown = columns::fitting(width, &rows, now);
        let kinds: Vec<Kind> = shown.iter().map(|column| column.kind).collect();
        let columns = shown.iter().map(|column| GridColumn {
            head: column.kind.head(),
            width: column.width,
            right: column.kind.right(),
            keeps_end: column.kind.keeps_end(),
            sorted: column.kind == Kind::Of(view.sort),
            is_state: column.kind == Kind::Of(Column::State),
        });
        let cells = move |item: &Item<'_>| match item {
            Item::Route(row) => kinds.iter().map(|kind| kind.cell(row, now)).collect(),
            _ => Vec::new(),
        };
        return Grid { columns: columns.collect(), cells: Box::new(cells) };
    }
    let (heads, right): (&[&'static str], &[bool]) = match view.panel {
        Panel::Waits => (&["SERVICE", "WAITED", "FOR", "CLIENT"], &[false, true, false, false]),
        Panel::Sessions => {
            (&["HOST", "CARRIER", "PATH", "TRIP", "STREAMS", "WHY"], &[false, false, false, true, true, false])
        }
        _ => (&["ABOUT", "WHAT"], &[false, false]),
    };
    let cells = move |item: &Item<'_>| -> Vec<String> {
        match item {
            Item::Wait(wait) => {
                let client = wait.of.client.clone().unwrap_or_default();
                vec![wait.title.clone(), waited(wait, now), for_what(wait), client]
            }
            Item::Session(session) => session_cells(session).to_vec(),
            Item::Trouble(trouble) => vec![trouble.about.clone(), sentence(trouble)],
            Item::Route(_) => Vec::new(),
        }
    };
    let all: Vec<Vec<String>> = items.iter().map(&cells).collect();
    let mut left = width;
    let columns = heads.iter().zip(right).enumerate().map(|(at, (head, right))| {
        let longest = all.iter().filter_map(|cells| cells.get(at)).map(|text| wide_of(text)).max().unwrap_or(0);
        let width = longest.max(wide_of(head)).min(left);
        left = left.saturating_sub(width + 1);
        GridColumn { head, width, right: *right, keeps_end: false, sorted: false, is_state: at == 0 }
    });
    Grid { columns: columns.collect(), cells: Box::new(cells) }
}

fn cell(pen: &mut Pen<'_>, (x, y): (usize, u16), column: &GridColumn, text: &str, tone: Tone) {
    let text = cut(&clean::line(text), column.width, column.keeps_end);
    let indent = if column.right { column.width.saturating_sub(wide_of(&text)) } else { 0 };
    pen.put((x + indent, y), &text, column.width, tone);
}

fn tone_of(item: &Item<'_>) -> Tone {
    match item {
        Item::Route(row) => match row.state {
            State::Unserved | State::Failing => Tone::Bad,
            State::Unavailable | State::Waiting => Tone::Doubtful,
            State::Ready => Tone::Good,
            State::Unknown => Tone::Quiet,
        },
        Item::Trouble(trouble) if trouble.severity == "fail" => Tone::Bad,
        Item::Trouble(_) => Tone::Doubtful,
        Item::Wait(_) | Item::Session(_) => Tone::Plain,
    }
}

/// Why a list is empty.
fn nothing(pen: &mut Pen<'_>, view: &View, scene: &Scene<'_>, top: u16) {
    let picture = scene.picture;
    let text = match view.panel {
        _ if !view.filter.is_empty() => "Nothing has all of these words; Esc drops the filter.",
        _ if picture.verdict.is_empty() => "Asking the daemon of this host.",
        Panel::Routes if picture.down.is_some() => "",
        Panel::Routes => {
            "No service yet. The first one, in another terminal: stado service register --name web --backend 127.0.0.1:3000"
        }
        Panel::Waits => "Nobody waits for an answer.",
        Panel::Sessions => "No other host was asked for anything: a session begins with the first connection to it.",
        Panel::Troubles => "There is nothing to put right.",
    };
    let width = usize::from(pen.area.width).saturating_sub(2);
    for (y, line) in (top..).zip(wrapped(text, 0, width)) {
        pen.put((2, y), &line, width, Tone::Plain);
    }
}
