//! The invitations of an authority and what became of each; pure, `now` passed in.
use crate::name::TargetName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Invitations that are remembered; the oldest that are over go first.
const MOST: usize = 500;
/// Refusals of one invitation that are remembered, the first of them and the last.
const REFUSALS: usize = 16;
/// How long an invitation that is over is remembered: whoever shows it by then is told what became of it.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// For whoever shows one that lets nobody in.
const NEXT: &str = "ask for a new one, which `stado fleet invite` makes on the authority";

/// All of them, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// One each.
    #[serde(default)]
    pub invitations: Vec<Record>,
}

/// One invitation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// The public half of its secret, as `type base64`.
    pub key: String,
    /// The only name that may join with it, when one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<TargetName>,
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// When it was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Timestamp>,
    /// Who joined with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Use>,
    /// Who showed it in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
}

/// A host that joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// As which target.
    pub target: TargetName,
    /// With which key of its own.
    pub key: String,
    /// From which address.
    pub from: String,
    /// When.
    pub at: Timestamp,
    /// The registry has had it: from then on the invitation does no more than go on for as long as it has.
    #[serde(default = "yes")]
    pub let_in: bool,
}

/// Of what was written down before it was told apart: nobody comes back in by it.
fn yes() -> bool {
    true
}

/// A host that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// `expired`, `used`, `withdrawn`, `other-name`.
    pub why: String,
    /// The name that it asked for.
    pub target: String,
    /// Its own key.
    pub key: String,
    /// From which address.
    pub from: String,
    /// When.
    pub at: Timestamp,
    /// Whether the owner has been told and knows.
    #[serde(default)]
    pub seen: bool,
}

/// Where an invitation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It can be used.
    Open,
    /// Somebody has joined with it.
    Used,
    /// Too late.
    Expired,
    /// Taken back.
    Withdrawn,
}

impl Fate {
    /// `open`, `used`, `expired`, `withdrawn`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Used => "used",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// What showing an invitation leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The host may join; the invitation is used from now on.
    Taken,
    /// The same host once more: it goes on where it was cut.
    Again,
    /// The same host once more, after it was let in as this one: it goes on, unless the registry has it no more.
    Known(TargetName),
    /// Not; the sentence, for whoever showed it.
    Refused(String),
}

impl Record {
    /// Where it stands. One that was used stays so.
    pub fn fate(&self, now: Timestamp) -> Fate {
        match self {
            Self { used: Some(_), .. } => Fate::Used,
            Self { withdrawn: Some(_), .. } => Fate::Withdrawn,
            Self { expires, .. } if *expires <= now => Fate::Expired,
            _ => Fate::Open,
        }
    }

    fn over_since(&self, now: Timestamp) -> Option<Timestamp> {
        match (&self.used, self.withdrawn, self.expires) {
            (Some(used), _, _) => Some(used.at),
            (None, Some(withdrawn), _) => Some(withdrawn),
            (None, None, expires) => (expires <= now).then_some(expires),
        }
    }

    /// Refusals that the owner does not know of and that tell of somebody else: a host that came too late by itself is not
    /// one.
    pub fn alarms(&self) -> impl Iterator<Item = &Refused> {
        self.refused.iter().filter(|refused| !refused.seen && refused.why == "used")
    }

    fn refuse(&mut self, why: &str, asking: &Use) {
        if self.refused.len() >= REFUSALS {
            // The first ones tell most.
            self.refused.truncate(REFUSALS - 1);
        }
        self.refused.push(Refused {
            why: why.to_owned(),
            target: asking.target.to_string(),
            key: asking.key.clone(),
            from: asking.from.clone(),
            at: asking.at,
            seen: false,
        });
    }
}

impl Book {
    /// Writes a new invitation down.
    pub fn add(&mut self, invitation: &super::Invitation, now: Timestamp) {
        self.forget_old(now);
        self.invitations.push(Record {
            id: invitation.id.clone(),
            key: invitation.public_key(),
            name: invitation.name.clone(),
            made: now,
            expires: invitation.expires,
            withdrawn: None,
            used: None,
            refused: Vec::new(),
        });
    }

    fn forget_old(&mut self, now: Timestamp) {
        let old = |record: &Record| record.over_since(now).is_some_and(|since| now.duration_since(since) > REMEMBERED);
        self.invitations.retain(|record| !old(record));
        while self.invitations.len() >= MOST {
            let over = self.invitations.iter().position(|record| record.over_since(now).is_some());
            self.invitations.remove(over.unwrap_or(0));
        }
    }

    /// The invitation whose secret has this public half.
    pub fn of_key(&self, key: &str) -> Option<&Record> {
        self.invitations.iter().find(|record| record.key == key)
    }

    /// A host shows the invitation `key`; `asking` says who it is.
    pub fn show(&mut self, key: &str, asking: Use) -> Verdict {
        let now = asking.at;
        let Some(record) = self.invitations.iter_mut().find(|record| record.key == key) else {
            return Verdict::Refused(format!("this invitation is not known here: {NEXT}"));
        };
        let id = record.id.clone();
        match record.fate(now) {
            Fate::Used => {
                let Some(used) = record.used.as_ref() else { return Verdict::Again };
                if used.key == asking.key {
                    return if used.let_in { Verdict::Known(used.target.clone()) } else { Verdict::Again };
                }
                let sentence = format!(
                    "invitation {id} was used already, at {} by {} from {}: an invitation lets one host in. If that host is \
                     yours, ask for another invitation; if it is not, somebody else had this one: say so to its owner, who \
                     was told of this attempt too",
                    seconds(used.at),
                    used.target,
                    used.from
                );
                record.refuse("used", &asking);
                Verdict::Refused(sentence)
            }
            Fate::Withdrawn => {
                let at = record.withdrawn.map(|at| format!(" at {}", seconds(at))).unwrap_or_default();
                record.refuse("withdrawn", &asking);
                Verdict::Refused(format!("invitation {id} was withdrawn{at}: {NEXT}"))
            }
            Fate::Expired => {
                let sentence = format!(
                    "invitation {id} expired at {} ({} ago by the clock of the authority): {NEXT}",
                    seconds(record.expires),
                    ago(now, record.expires)
                );
                record.refuse("expired", &asking);
                Verdict::Refused(sentence)
            }
            Fate::Open => {
                if let Some(name) = record.name.clone().filter(|name| *name != asking.target) {
                    record.refuse("other-name", &asking);
                    let sentence =
                        format!("invitation {id} is for {name} alone, and this host asks to join as {}", asking.target);
                    return Verdict::Refused(sentence);
                }
                record.used = Some(asking);
                Verdict::Taken
            }
        }
    }

    /// The registry has the host now.
    pub fn let_in(&mut self, key: &str, host: &str) {
        let record = self.invitations.iter_mut().find(|record| record.key == key);
        if let Some(used) = record.and_then(|record| record.used.as_mut()).filter(|used| used.key == host) {
            used.let_in = true;
        }
    }

    /// Opens an invitation again whose host was not taken in after all.
    pub fn reopen(&mut self, key: &str, host: &str) {
        let record = self.invitations.iter_mut().find(|record| record.key == key);
        if let Some(record) = record.filter(|record| record.used.as_ref().is_some_and(|used| used.key == host)) {
            record.used = None;
        }
    }

    /// Takes an invitation back that nobody has used; what it was before, when it is known.
    pub fn withdraw(&mut self, id: &str, now: Timestamp) -> Option<Fate> {
        let record = self.invitations.iter_mut().find(|record| record.id == id)?;
        let before = record.fate(now);
        if before == Fate::Open {
            record.withdrawn = Some(now);
        }
        Some(before)
    }

    /// The owner has read what was refused.
    pub fn seen(&mut self) {
        let refused = self.invitations.iter_mut().flat_map(|record| &mut record.refused);
        refused.for_each(|refused| refused.seen = true);
    }

    /// One sentence for each invitation that another host showed after it was used.
    pub fn warnings(&self) -> Vec<String> {
        self.invitations.iter().filter_map(warning).collect()
    }
}

fn warning(record: &Record) -> Option<String> {
    let last = record.alarms().last()?;
    let used = record.used.as_ref()?;
    Some(format!(
        "invitation {} was shown again at {} from {} (as {}), after {} had joined with it at {} from {}: one of the two may have \
         stolen it. If {} is not yours, `stado registry host remove {}` shuts it out; `stado fleet invitations --seen` ends this \
         warning",
        record.id,
        seconds(last.at),
        last.from,
        last.target,
        used.target,
        seconds(used.at),
        used.from,
        used.target,
        used.target
    ))
}

fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    let whole = now.duration_since(then).as_secs();
    match whole {
        ..120 => format!("{whole}s"),
        120..7200 => format!("{}m", whole / 60),
        _ => format!("{}h", whole / 3600),
    }
}
