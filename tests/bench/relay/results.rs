//! What was found, round by round.
use crate::lines::Line;
use crate::way::Kind;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Results(BTreeMap<(Line, Kind, usize), f64>);

impl Results {
    pub fn add(&mut self, line: Line, kind: Kind, round: usize, value: f64) {
        self.0.insert((line, kind, round), value);
    }

    fn of(&self, line: Line, kind: Kind) -> impl Iterator<Item = (usize, f64)> + '_ {
        let rounds = self.0.range((line, kind, 0)..=(line, kind, usize::MAX));
        rounds.map(|(&(_, _, round), &value)| (round, value))
    }

    pub fn median(&self, line: Line, kind: Kind) -> Option<f64> {
        middle(self.of(line, kind).map(|(_, value)| value).collect())
    }

    /// The median of the shares within each round, of what the line is compared with.
    pub fn share(&self, line: Line, kind: Kind) -> Option<f64> {
        let (base, other) = line.own_base().map_or((line, Kind::Openssh), |own| (own, kind));
        let shares = self.of(line, kind).filter_map(|(round, value)| {
            let base = self.0.get(&(base, other, round))?;
            Some(value / base)
        });
        middle(shares.collect())
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
