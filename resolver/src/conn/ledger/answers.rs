//! Since when a service has answered, or not (fleet contract §4.8).
use super::waits::seconds;
use jiff::Timestamp;
use stado_fleet::ledger::{Answers, AnswersFile};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One service's answers. The first answer clears what went unanswered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTimes {
    /// First byte of the latest answer.
    pub answered: Option<Timestamp>,
    /// First and latest request since then that ended without an answer.
    pub unanswered: Option<(Timestamp, Timestamp)>,
}
impl AnswerTimes {
    pub(super) fn answer(&mut self, now: Timestamp) {
        *self = Self { answered: Some(now), unanswered: None };
    }
    pub(super) fn no_answer(&mut self, now: Timestamp) {
        let first = self.unanswered.map_or(now, |(first, _)| first);
        self.unanswered = Some((first, now));
    }
    /// What two processes saw together. An answer clears what went unanswered before it, whoever saw it.
    fn merged(self, other: Self) -> Self {
        let answered = self.answered.max(other.answered);
        let since = |times: Self| times.unanswered.filter(|(_, last)| answered.is_none_or(|at| *last > at));
        let unanswered = match (since(self), since(other)) {
            (Some((first, last)), Some((also, later))) => Some((first.min(also), last.max(later))),
            (one, another) => one.or(another),
        };
        Self { answered, unanswered }
    }
    fn row(&self) -> Answers {
        Answers {
            last_answered_at: self.answered.map(seconds),
            first_unanswered_at: self.unanswered.map(|(first, _)| seconds(first)),
            last_unanswered_at: self.unanswered.map(|(_, last)| seconds(last)),
        }
    }
    /// Reads a published row; a field that is no time is as good as missing.
    fn read(row: &Answers) -> Self {
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
        let first = time(&row.first_unanswered_at);
        let last = time(&row.last_unanswered_at);
        let unanswered = first.or(last).map(|first| (first, last.unwrap_or(first)));
        Self { answered: time(&row.last_answered_at), unanswered }
    }
}

/// One service's times, shared by its adapters.
pub(super) type Cell = Arc<Mutex<AnswerTimes>>;

#[derive(Debug, Default)]
pub(super) struct Table(Mutex<BTreeMap<Arc<str>, Cell>>);
impl Table {
    pub(super) fn cell(&self, service: &Arc<str>) -> Cell {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(table.entry(Arc::clone(service)).or_default())
    }

    /// Services that were never asked have no row.
    pub(super) fn snapshot(&self) -> AnswersFile {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = table.iter().map(|(service, cell)| (service, *lock(cell)));
        let asked = times.filter(|(_, times)| *times != AnswerTimes::default());
        asked.map(|(service, times)| (service.to_string(), times.row())).collect()
    }

    pub(super) fn restore(&self, file: &AnswersFile) {
        for (service, row) in file {
            let cell = self.cell(&Arc::from(service.as_str()));
            let mut held = lock(&cell);
            if *held == AnswerTimes::default() {
                *held = AnswerTimes::read(row);
            }
        }
    }

    pub(super) fn merge(&self, file: &AnswersFile) {
        for (service, row) in file {
            let cell = self.cell(&Arc::from(service.as_str()));
            let mut held = lock(&cell);
            *held = held.merged(AnswerTimes::read(row));
        }
    }
}

pub(super) fn lock(cell: &Mutex<AnswerTimes>) -> std::sync::MutexGuard<'_, AnswerTimes> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}
