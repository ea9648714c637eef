//! The lines of the table, and what is aimed at.
use crate::peers::Subject;
use std::collections::BTreeMap;

/// Lines that are measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Bulk,
    Trips,
    Connections,
    Resets,
    OrdinaryUser,
    Idle,
    Listeners,
    Start,
}
impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Trips => "trips",
            Self::Connections => "connections",
            Self::Resets => "resets",
            Self::OrdinaryUser => "user",
            Self::Idle => "idle",
            Self::Listeners => "listeners",
            Self::Start => "start",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    Bulk { down: bool, streams: usize, user: bool },
    BulkCpu { down: bool, streams: usize, user: bool },
    Trips,
    TripsCpu,
    Median,
    Ninetynine,
    Connections,
    ConnectionsCpu,
    IdleMemory,
    IdleDescriptors,
    Listeners,
    StartTime,
    StartMemory,
    ResetUp,
    ResetDown,
}

/// What Stado's value is held against.
pub enum Target {
    /// At least this many times the best peer.
    TimesBest(f64),
    /// At most this many times the best peer.
    NoWorse(f64),
    /// At least this many times nginx.
    TimesNginx(f64),
    /// At most this many times haproxy (the better of its two configurations).
    OfHaproxy(f64),
    /// At most this many times nginx.
    OfNginx(f64),
    /// At most this.
    AtMost(f64),
    /// Exactly this.
    Exactly(f64),
    None,
}

impl Line {
    pub fn label(self) -> String {
        let bulk = |down: bool, streams: usize, user: bool| {
            let way = if down { "down" } else { "up" };
            let who = if user { ", ordinary user" } else { "" };
            format!("bulk {way}, {streams} stream{}{who}", if streams == 1 { "" } else { "s" })
        };
        match self {
            Self::Bulk { down, streams, user } => format!("{}: GiB/s", bulk(down, streams, user)),
            Self::BulkCpu { down, streams, user } => format!("{}: CPU s/GiB", bulk(down, streams, user)),
            Self::Trips => "64-byte round trips, 64 connections: 1,000/s".into(),
            Self::TripsCpu => "64-byte round trips, 64 connections: CPU µs each".into(),
            Self::Median => "64-byte round trip, 1 connection: p50 µs".into(),
            Self::Ninetynine => "64-byte round trip, 1 connection: p99 µs".into(),
            Self::Connections => "new connections: 1,000/s".into(),
            Self::ConnectionsCpu => "new connections: CPU µs each".into(),
            Self::IdleMemory => "idle connection: KiB".into(),
            Self::IdleDescriptors => "idle connection: descriptors".into(),
            Self::Listeners => "1,000 services (for Stado 2,000 listeners): MB".into(),
            Self::StartTime => "start with 9,000 services, 18,000 listeners: s".into(),
            Self::StartMemory => "9,000 services, 18,000 listeners: MiB".into(),
            Self::ResetUp => "a client's reset reaches the service".into(),
            Self::ResetDown => "a service's reset reaches the client".into(),
        }
    }

    pub fn target(self) -> Target {
        match self {
            Self::Bulk { streams: 1, .. } => Target::TimesBest(1.1),
            Self::Bulk { .. } => Target::TimesBest(1.05),
            Self::BulkCpu { .. } => Target::OfHaproxy(0.75),
            Self::Trips | Self::Connections => Target::TimesNginx(1.0),
            Self::TripsCpu => Target::OfNginx(0.95),
            Self::Median | Self::Ninetynine => Target::NoWorse(1.0),
            Self::ConnectionsCpu => Target::OfNginx(0.9),
            Self::IdleMemory => Target::AtMost(2.3),
            Self::IdleDescriptors => Target::Exactly(2.0),
            Self::Listeners => Target::AtMost(6.0),
            Self::StartTime => Target::AtMost(2.0),
            Self::StartMemory => Target::AtMost(100.0),
            Self::ResetUp | Self::ResetDown => Target::None,
        }
    }

    /// Whether the line says yes (1) or no (0).
    pub fn is_yes_or_no(self) -> bool {
        matches!(self, Self::ResetUp | Self::ResetDown)
    }
}

/// Values of every round.
#[derive(Default)]
pub struct Results(BTreeMap<(Line, Subject), Vec<f64>>);

impl Results {
    pub fn add(&mut self, line: Line, subject: Subject, value: f64) {
        self.0.entry((line, subject)).or_default().push(value);
    }

    pub fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.0.keys().map(|(line, _)| *line).collect();
        lines.dedup();
        lines
    }

    pub fn values(&self, line: Line, subject: Subject) -> &[f64] {
        self.0.get(&(line, subject)).map_or(&[], Vec::as_slice)
    }

    pub fn median(&self, line: Line, subject: Subject) -> Option<f64> {
        median(self.values(line, subject).to_vec())
    }

    /// The median over the rounds of one subject's value as a share of another's in the same round.
    pub fn ratio(&self, line: Line, subject: Subject, other: Subject) -> Option<f64> {
        let pairs = self.values(line, subject).iter().zip(self.values(line, other));
        median(pairs.map(|(a, b)| a / b).collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
