//! The lines of the table, and what each way shall reach on them.
use crate::way::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    Up1,
    Down1,
    Up8,
    Down8,
    Trip,
    Sixteen,
    Opens,
    Idle,
    BesideMute,
    BesideBulk,
    CpuUp,
    CpuDown,
    FarUp1,
    FarDown1,
    FarUp8,
    FarDown8,
    FarTrip,
}

/// A share of what it is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub fn holds(self, share: f64) -> bool {
        match self {
            Self::AtLeast(least) => share >= least,
            Self::AtMost(most) => share <= most,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

use Line::*;
use Target::{AtLeast, AtMost};

impl Line {
    pub const ALL: [Self; 17] = [
        Up1, Down1, Up8, Down8, Trip, Sixteen, Opens, Idle, BesideMute, BesideBulk, CpuUp, CpuDown, FarUp1, FarDown1,
        FarUp8, FarDown8, FarTrip,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Up1 => "upload, one stream, MiB/s",
            Down1 => "download, one stream, MiB/s",
            Up8 => "upload, eight streams, MiB/s",
            Down8 => "download, eight streams, MiB/s",
            Trip => "64-byte round trip alone, µs",
            Sixteen => "64-byte round trips on sixteen streams, per second",
            Opens => "opens with one byte there and back, per second",
            Idle => "memory of 1,000 idle streams, client's side, MiB",
            BesideMute => "round trip beside a reader that never reads, µs; of its own alone",
            BesideBulk => "round trip beside a download, µs; of its own alone",
            CpuUp => "client CPU, upload, s/GiB",
            CpuDown => "client CPU, download, s/GiB",
            FarUp1 => "at 20 ms: upload, one stream, MiB/s",
            FarDown1 => "at 20 ms: download, one stream, MiB/s",
            FarUp8 => "at 20 ms: upload, eight streams, MiB/s",
            FarDown8 => "at 20 ms: download, eight streams, MiB/s",
            FarTrip => "at 20 ms: 64-byte round trip, µs",
        }
    }

    /// What a way is compared with: OpenSSH, or itself on another line.
    pub fn own_base(self) -> Option<Self> {
        matches!(self, BesideMute | BesideBulk).then_some(Trip)
    }

    /// What a way shall reach.
    pub fn target(self, kind: Kind) -> Option<Target> {
        let more = matches!(self, Up1 | Down1 | Up8 | Down8 | Sixteen | Opens | FarUp1 | FarDown1 | FarUp8 | FarDown8);
        match (kind, self) {
            (Kind::Openssh, _) => None,
            // "Unchanged": differences under a fifth are noise.
            (_, BesideMute) => Some(AtMost(1.2)),
            (_, BesideBulk) => Some(AtMost(3.0)),
            (_, CpuUp | CpuDown) => Some(AtMost(1.0)),
            (Kind::Gate, Idle | Trip | FarTrip) => Some(AtMost(1.0)),
            (Kind::Gate, _) if more => Some(AtLeast(1.0)),
            (Kind::Multiplex, Up1 | Down1 | Up8 | Down8) => Some(AtLeast(0.95)),
            (Kind::Multiplex, Trip) => Some(AtMost(1.3)),
            (Kind::Multiplex, Sixteen) => Some(AtLeast(1.1)),
            (Kind::Multiplex, Opens) => Some(AtLeast(1.15)),
            (Kind::Multiplex, Idle) => Some(AtMost(0.15)),
            (Kind::Multiplex, FarDown1 | FarDown8) => Some(AtLeast(2.0)),
            (Kind::Direct, Up1 | Up8) => Some(AtLeast(1.2)),
            (Kind::Direct, Down1 | Down8 | Sixteen) => Some(AtLeast(1.0)),
            (Kind::Direct, Trip) => Some(AtMost(1.0)),
            _ => None,
        }
    }
}
