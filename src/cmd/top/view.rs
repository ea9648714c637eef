//! What the person looks at, and what a key changes of it. Pure.
use super::picture::{Picture, Row, Session, Wait};
use crate::cmd::status::Trouble;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;

/// The lists that can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Routes,
    Waits,
    Sessions,
    Troubles,
}

impl Panel {
    pub(super) const ALL: [Self; 4] = [Self::Routes, Self::Waits, Self::Sessions, Self::Troubles];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Routes => "Routes",
            Self::Waits => "Waits",
            Self::Sessions => "Sessions",
            Self::Troubles => "Troubles",
        }
    }
}

/// What routes are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    State,
    Name,
    Address,
    Open,
    New,
    Up,
    Down,
    Wait,
    Trip,
}

impl Column {
    const ALL: [Self; 9] =
        [Self::State, Self::Name, Self::Address, Self::Open, Self::New, Self::Up, Self::Down, Self::Wait, Self::Trip];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Name => "service",
            Self::Address => "address",
            Self::Open => "open",
            Self::New => "new a second",
            Self::Up => "bytes up",
            Self::Down => "bytes down",
            Self::Wait => "longest wait",
            Self::Trip => "round trip",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        Self::ALL.into_iter().cycle().nth(at + 1).unwrap_or(Self::State)
    }

    /// The worst, or the most, first.
    fn order(self, a: &Row, b: &Row) -> Ordering {
        let rates = |row: &Row| row.rates.unwrap_or_default();
        let trip = |row: &Row| row.way.as_ref().and_then(|way| way.rtt_us).unwrap_or(0);
        match self {
            Self::State => a.state.cmp(&b.state),
            Self::Name => Ordering::Equal,
            Self::Address => a.standing.address.cmp(&b.standing.address),
            Self::Open => b.standing.traffic.active.cmp(&a.standing.traffic.active),
            Self::New => rates(b).new.total_cmp(&rates(a).new),
            Self::Up => rates(b).up.total_cmp(&rates(a).up),
            Self::Down => rates(b).down.total_cmp(&rates(a).down),
            // Who waits longest began first; who does not wait comes last.
            Self::Wait => (a.waits_since.is_none(), a.waits_since).cmp(&(b.waits_since.is_none(), b.waits_since)),
            Self::Trip => trip(b).cmp(&trip(a)),
        }
    }
}

/// A page over the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    Help,
    /// The story of the item with this key.
    Story(Panel, String),
}

/// Where in a list somebody stands. It is the item that is kept, wherever it moves.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    key: Option<String>,
    at: usize,
    /// The first line that is shown; the drawing keeps the cursor inside.
    pub(super) first: usize,
}

/// What the person has chosen.
#[derive(Debug)]
pub(super) struct View {
    pub(super) panel: Panel,
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) typing: bool,
    pub(super) sort: Column,
    pub(super) reversed: bool,
    pub(super) page: Option<Page>,
    /// The first line of the page that is shown; the drawing keeps it inside.
    pub(super) scroll: usize,
    /// What the last key did, until the next one.
    pub(super) note: Option<String>,
    /// Lines of a list, as they were drawn last.
    pub(super) height: usize,
    cursors: [Cursor; 4],
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Quit,
    /// Back to the shell, for a while.
    Suspend,
    /// Draw everything anew.
    Redraw,
    Copy(String),
    Open(String),
}

/// Anything that stands in a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    Route(&'a Row),
    Wait(&'a Wait),
    Session(&'a Session),
    Trouble(&'a Trouble),
}

impl Item<'_> {
    pub(super) fn key(&self) -> String {
        match self {
            Self::Route(row) => row.standing.id.clone(),
            Self::Wait(wait) => {
                format!("{} {} {}", wait.route, wait.of.since, wait.of.client.as_deref().unwrap_or_default())
            }
            Self::Session(session) => session.link.host.clone(),
            Self::Trouble(trouble) => format!("{} {}", trouble.about, trouble.what),
        }
    }

    /// Whether each word of the filter stands somewhere in it.
    fn has(&self, filter: &str) -> bool {
        let text = match self {
            Self::Route(row) => {
                let standing = &row.standing;
                let texts =
                    [&*row.title, row.state.word(), &standing.address, &standing.place, &standing.host, &row.why];
                texts.join(" ")
            }
            Self::Wait(wait) => {
                let client = wait.of.client.as_deref().unwrap_or_default();
                [&*wait.title, &wait.of.active_host, &wait.of.endpoint, &wait.of.phase, client].join(" ")
            }
            Self::Session(session) => [&*session.link.host, &session.link.carrier, &session.link.path].join(" "),
            Self::Trouble(trouble) => [&*trouble.about, &trouble.what].join(" "),
        };
        let text = text.to_lowercase();
        filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            panel: Panel::Routes,
            filter: String::new(),
            typing: false,
            sort: Column::State,
            reversed: false,
            page: None,
            scroll: 0,
            note: None,
            height: 1,
            cursors: Default::default(),
        }
    }
}

impl View {
    /// What a list shows now.
    pub(super) fn items<'a>(&self, panel: Panel, picture: &'a Picture) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'a>> = match panel {
            Panel::Routes => self.sorted(picture).into_iter().map(Item::Route).collect(),
            Panel::Waits => picture.waits.iter().map(Item::Wait).collect(),
            Panel::Sessions => picture.sessions.iter().map(Item::Session).collect(),
            Panel::Troubles => picture.troubles.iter().map(Item::Trouble).collect(),
        };
        items.retain(|item| item.has(&self.filter));
        items
    }

    fn sorted<'a>(&self, picture: &'a Picture) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = picture.routes.iter().collect();
        let name = |a: &Row, b: &Row| (&a.title, &a.standing.id).cmp(&(&b.title, &b.standing.id));
        rows.sort_by(|a, b| self.sort.order(a, b).then_with(|| name(a, b)));
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    /// Where in `items` the cursor stands.
    pub(super) fn at(&self, items: &[Item<'_>]) -> Option<usize> {
        let cursor = self.cursor()?;
        let last = items.len().checked_sub(1)?;
        let kept = cursor.key.as_ref().and_then(|key| items.iter().position(|item| item.key() == *key));
        Some(kept.unwrap_or(cursor.at).min(last))
    }

    fn cursor(&self) -> Option<&Cursor> {
        self.cursors.get(self.panel as usize)
    }

    pub(super) fn cursor_mut(&mut self) -> Option<&mut Cursor> {
        self.cursors.get_mut(self.panel as usize)
    }

    /// The item that a page tells of; `None` when it is gone.
    pub(super) fn item<'a>(panel: Panel, key: &str, picture: &'a Picture) -> Option<Item<'a>> {
        View::default().items(panel, picture).into_iter().find(|item| item.key() == key)
    }

    /// The item that keys are about: the page's, else the one under the cursor.
    pub(super) fn subject<'a>(&self, picture: &'a Picture) -> Option<Item<'a>> {
        if let Some(Page::Story(panel, key)) = &self.page {
            return Self::item(*panel, key, picture);
        }
        let items = self.items(self.panel, picture);
        items.get(self.at(&items)?).copied()
    }

    /// The route that keys are about.
    pub(super) fn route<'a>(&self, picture: &'a Picture) -> Option<&'a Row> {
        let route = |is: &dyn Fn(&Row) -> bool| picture.routes.iter().find(|row| is(row));
        match self.subject(picture)? {
            Item::Route(row) => Some(row),
            Item::Wait(wait) => route(&|row| row.standing.id == wait.route),
            Item::Trouble(trouble) => route(&|row| row.standing.name == trouble.about),
            Item::Session(_) => None,
        }
    }

    /// The service whose connections the page tells of.
    pub(super) fn followed<'a>(&self, picture: &'a Picture) -> Option<&'a str> {
        match self.page {
            Some(Page::Story(..)) => self.route(picture).map(|row| row.standing.name.as_str()),
            _ => None,
        }
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent, picture: &Picture) -> Effect {
        self.note = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Effect::Quit,
                KeyCode::Char('z') => Effect::Suspend,
                KeyCode::Char('l') => Effect::Redraw,
                _ => Effect::Nothing,
            };
        }
        match (self.typing, &self.page) {
            (true, _) => self.typed(key.code),
            (false, Some(_)) => self.on_page(key.code, picture),
            (false, None) => self.on_list(key.code, picture),
        }
    }

    fn typed(&mut self, code: KeyCode) -> Effect {
        match code {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace if self.filter.pop().is_none() => self.typing = false,
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
            _ => {}
        }
        Effect::Nothing
    }

    fn on_page(&mut self, code: KeyCode, picture: &Picture) -> Effect {
        match code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Left | KeyCode::Backspace | KeyCode::Char('q') => self.page = None,
            KeyCode::Char('?') if self.page == Some(Page::Help) => self.page = None,
            KeyCode::Char('?') => (self.page, self.scroll) = (Some(Page::Help), 0),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += self.height,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.height),
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            // The drawing knows where the end is.
            KeyCode::End | KeyCode::Char('G') => self.scroll = usize::MAX / 2,
            KeyCode::Char('c') => return self.copy(picture),
            KeyCode::Char('o') => return self.open(picture),
            _ => {}
        }
        Effect::Nothing
    }

    fn on_list(&mut self, code: KeyCode, picture: &Picture) -> Effect {
        let page = isize::try_from(self.height).unwrap_or(1).max(1);
        match code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Char('c') => return self.copy(picture),
            KeyCode::Char('o') => return self.open(picture),
            KeyCode::Char('?') => (self.page, self.scroll) = (Some(Page::Help), 0),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('s') => (self.sort, self.reversed) = (self.sort.next(), false),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Panel::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => {
                let at = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(1) - 1;
                self.panel = Panel::ALL.get(at).copied().unwrap_or(self.panel);
            }
            KeyCode::Down | KeyCode::Char('j') => self.walk(1, picture),
            KeyCode::Up | KeyCode::Char('k') => self.walk(-1, picture),
            KeyCode::PageDown | KeyCode::Char(' ') => self.walk(page, picture),
            KeyCode::PageUp => self.walk(-page, picture),
            KeyCode::Home | KeyCode::Char('g') => self.walk(isize::MIN, picture),
            KeyCode::End | KeyCode::Char('G') => self.walk(isize::MAX, picture),
            KeyCode::Enter | KeyCode::Right => self.tell(picture),
            _ => {}
        }
        Effect::Nothing
    }

    fn turn(&mut self, by: usize) {
        let at = self.panel as usize + by;
        self.panel = Panel::ALL.get(at % Panel::ALL.len()).copied().unwrap_or(Panel::Routes);
    }

    fn walk(&mut self, by: isize, picture: &Picture) {
        let items = self.items(self.panel, picture);
        let Some(at) = self.at(&items) else { return };
        let at = at.saturating_add_signed(by).min(items.len() - 1);
        let key = items.get(at).map(Item::key);
        if let Some(cursor) = self.cursor_mut() {
            (cursor.at, cursor.key) = (at, key);
        }
    }

    fn tell(&mut self, picture: &Picture) {
        if let Some(item) = self.subject(picture) {
            (self.page, self.scroll) = (Some(Page::Story(self.panel, item.key())), 0);
        }
    }

    fn copy(&mut self, picture: &Picture) -> Effect {
        self.with_address(picture).map_or(Effect::Nothing, Effect::Copy)
    }

    fn open(&mut self, picture: &Picture) -> Effect {
        let Some(address) = self.with_address(picture) else { return Effect::Nothing };
        if address.starts_with("http://") || address.starts_with("https://") {
            return Effect::Open(address);
        }
        self.note = Some(format!("{address} is no web address; c copies it"));
        Effect::Nothing
    }

    /// The address that the keys are about, or a note why there is none.
    fn with_address(&mut self, picture: &Picture) -> Option<String> {
        let address = self.route(picture).map(|row| (row.title.clone(), row.standing.address.clone()));
        match address {
            Some((title, address)) if address.is_empty() => {
                self.note = Some(format!("{title} has no address now"));
                None
            }
            Some((_, address)) => Some(address),
            None => {
                self.note = Some("nothing with an address is chosen".to_owned());
                None
            }
        }
    }
}
