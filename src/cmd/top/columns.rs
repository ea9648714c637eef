//! Which columns of the routes a width has room for, and what stands in them. Pure.
use super::picture::Row;
use super::story::seconds;
use super::view::Column;
use crate::cmd::age;
use crate::cmd::resolver::millis;
use jiff::Timestamp;
use ratatui::text::Span;

/// One column as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) kind: Kind,
    pub(super) width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Of(Column),
    /// Where it stands, or why nowhere.
    Behind,
}

/// What goes first when there is little room, with the narrowest width that says something.
const BY_WORTH: [(Kind, usize); 7] = [
    (Kind::Of(Column::State), 11),
    (Kind::Of(Column::Address), 15),
    (Kind::Of(Column::Open), 4),
    (Kind::Of(Column::New), 5),
    (Kind::Of(Column::Down), 6),
    (Kind::Of(Column::Up), 5),
    (Kind::Of(Column::Wait), 4),
];
/// What comes when names and addresses have the room that they need.
const AFTER: [(Kind, usize); 2] = [(Kind::Of(Column::Trip), 7), (Kind::Behind, 18)];
const NAME: usize = 12;

impl Kind {
    pub(super) fn head(self) -> &'static str {
        match self {
            Self::Of(Column::State) => "STATE",
            Self::Of(Column::Name) => "SERVICE",
            Self::Of(Column::Address) => "ADDRESS",
            Self::Of(Column::Open) => "OPEN",
            Self::Of(Column::New) => "NEW/S",
            Self::Of(Column::Up) => "UP/S",
            Self::Of(Column::Down) => "DOWN/S",
            Self::Of(Column::Wait) => "WAIT",
            Self::Of(Column::Trip) => "TRIP",
            Self::Behind => "BEHIND IT",
        }
    }

    /// Numbers stand at the right of their column.
    pub(super) fn right(self) -> bool {
        !matches!(self, Self::Behind | Self::Of(Column::State | Column::Name | Column::Address))
    }

    /// Whether the end of what is too long says more than its beginning.
    pub(super) fn keeps_end(self) -> bool {
        self == Self::Of(Column::Address)
    }

    /// What stands there for a route.
    pub(super) fn cell(self, row: &Row, now: Timestamp) -> String {
        let rate = |of: fn(&super::meter::Rates) -> f64, unit| {
            row.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| short(of(rates), unit))
        };
        match self {
            Self::Of(Column::State) => row.state.word().to_owned(),
            Self::Of(Column::Name) => row.title.clone(),
            Self::Of(Column::Address) => address(row),
            Self::Of(Column::Open) => count(row.standing.traffic.active),
            Self::Of(Column::New) => rate(|rates| rates.new, 1000.0),
            Self::Of(Column::Up) => rate(|rates| rates.up, 1024.0),
            Self::Of(Column::Down) => rate(|rates| rates.down, 1024.0),
            Self::Of(Column::Wait) => row.waits_since.map(|since| age::span(seconds(since, now))).unwrap_or_default(),
            Self::Of(Column::Trip) => row.way.as_ref().and_then(|way| way.rtt_us).map(millis).unwrap_or_default(),
            Self::Behind => row.behind().to_owned(),
        }
    }
}

/// An http address is the usual one, and short of columns.
fn address(row: &Row) -> String {
    let address = row.standing.address.as_str();
    if address.is_empty() { "-".to_owned() } else { address.strip_prefix("http://").unwrap_or(address).to_owned() }
}

#[expect(clippy::cast_precision_loss, reason = "a count is shown with two digits")]
fn count(number: u64) -> String {
    short(number as f64, 1000.0)
}

/// At most four characters: `0`, `0.4`, `812`, `1.2K`, `34K`.
pub(super) fn short(number: f64, unit: f64) -> String {
    let (mut number, mut units) = (number.max(0.0), ["", "K", "M", "G", "T", "P"].into_iter());
    let mut sign = units.next().unwrap_or_default();
    while number >= 999.5 {
        let Some(larger) = units.next() else { break };
        (number, sign) = (number / unit, larger);
    }
    let digits = usize::from(number < 9.95 && (number > 0.05 || !sign.is_empty()) && number.fract() > 0.0);
    format!("{number:.digits$}{sign}")
}

/// The columns that fit, from the left.
pub(super) fn fitting(width: usize, rows: &[&Row], now: Timestamp) -> Vec<Shown> {
    let mut shown = vec![Shown { kind: Kind::Of(Column::Name), width: NAME.min(width) }];
    let mut left = add(&mut shown, &BY_WORTH, width.saturating_sub(NAME));
    for wide in [Kind::Of(Column::Name), Kind::Of(Column::Address)] {
        left = widen(&mut shown, wide, rows, now, left);
    }
    if shown.len() > BY_WORTH.len() {
        left = add(&mut shown, &AFTER, left);
    }
    widen(&mut shown, Kind::Behind, rows, now, left);
    let place = |column: &Shown| ORDER.iter().position(|kind| *kind == column.kind).unwrap_or(ORDER.len());
    shown.sort_by_key(place);
    shown
}

/// Adds columns until one does not fit; what is left of the width.
fn add(shown: &mut Vec<Shown>, kinds: &[(Kind, usize)], mut left: usize) -> usize {
    for (kind, width) in kinds {
        let Some(rest) = left.checked_sub(width + 1) else { break };
        shown.push(Shown { kind: *kind, width: *width });
        left = rest;
    }
    left
}

/// Gives a column what its content needs; what is left of the width.
fn widen(shown: &mut [Shown], kind: Kind, rows: &[&Row], now: Timestamp, left: usize) -> usize {
    let longest = rows.iter().map(|row| wide_of(&kind.cell(row, now))).max().unwrap_or(0);
    let Some(column) = shown.iter_mut().find(|column| column.kind == kind) else { return left };
    let more = longest.saturating_sub(column.width).min(left);
    column.width += more;
    left - more
}

/// From the left.
const ORDER: [Kind; 10] = [
    Kind::Of(Column::Name),
    Kind::Of(Column::State),
    Kind::Of(Column::Address),
    Kind::Of(Column::Open),
    Kind::Of(Column::New),
    Kind::Of(Column::Up),
    Kind::Of(Column::Down),
    Kind::Of(Column::Wait),
    Kind::Of(Column::Trip),
    Kind::Behind,
];

/// Columns of a terminal that a text takes.
pub(super) fn wide_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// What of a text fits, with a sign that something is missing.
pub(super) fn cut(text: &str, width: usize, keeps_end: bool) -> String {
    if wide_of(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut letters: Vec<char> = text.chars().collect();
    if keeps_end {
        letters.reverse();
    }
    for letter in letters {
        if wide_of(&kept) + wide_of(letter.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        kept.push(letter);
    }
    match (width, keeps_end) {
        (0, _) => String::new(),
        (_, true) => std::iter::once('…').chain(kept.chars().rev()).collect(),
        (_, false) => kept + "…",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_four_columns_at_most() {
        let shown =
            [0.0, 0.04, 0.44, 3.0, 9.96, 12.3, 999.4, 1000.0, 1234.0, 10_240.0, 1e6, 2e9].map(|n| short(n, 1000.0));
        assert_eq!(shown, ["0", "0", "0.4", "3", "10", "12", "999", "1K", "1.2K", "10K", "1M", "2G"]);
        assert!([1023.0, 1e15, 1e17, f64::MAX].map(|n| short(n, 1024.0)).iter().all(|text| !text.is_empty()));
    }

    #[test]
    fn what_is_too_long_is_cut_where_it_says_least() {
        assert_eq!(cut("checkout.db", 11, false), "checkout.db");
        assert_eq!(cut("checkout.db", 8, false), "checkou…");
        assert_eq!(cut("web.localhost:8088", 8, true), "…st:8088");
        assert_eq!(cut("日本語", 4, false), "日…", "two columns each");
        assert_eq!((cut("x", 0, true), cut("xy", 1, false)), (String::new(), "…".to_owned()));
    }

    #[test]
    fn a_width_has_the_columns_that_say_most() {
        let heads =
            |width| fitting(width, &[], Timestamp::UNIX_EPOCH).iter().map(|c| c.kind.head()).collect::<Vec<_>>();
        assert_eq!(heads(38), ["SERVICE", "STATE"]);
        assert_eq!(heads(70), ["SERVICE", "STATE", "ADDRESS", "OPEN", "NEW/S", "UP/S", "DOWN/S", "WAIT"]);
        assert_eq!(heads(118).last(), Some(&"BEHIND IT"));
        for width in 0..200 {
            let all: usize = fitting(width, &[], Timestamp::UNIX_EPOCH).iter().map(|c| c.width + 1).sum();
            assert!(all <= width + 1, "{width}");
        }
    }
}
