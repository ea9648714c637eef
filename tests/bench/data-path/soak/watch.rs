//! What the daemons hold, and whether it stays so.
use std::fmt;

#[derive(Clone, Copy)]
pub struct Sample {
    pub processes: usize,
    pub descriptors: usize,
    pub memory: u64,
}
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} process(es), {} descriptors, {:.1} MB",
            self.processes,
            self.descriptors,
            self.memory as f64 / 1e6
        )
    }
}

pub struct Verdict {
    pub flat: bool,
    early: (usize, f64),
    late: (usize, f64),
}
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((d0, m0), (d1, m1)) = (self.early, self.late);
        let word = if self.flat { "flat" } else { "NOT flat" };
        write!(f, "descriptors {d0} → {d1}, memory {m0:.1} → {m1:.1} MB a process: {word}")
    }
}

/// The medians of the second and of the last fifth against each other, for one process. The first fifth is warm-up.
pub fn judge(samples: &[Sample]) -> Verdict {
    let fifth = (samples.len() / 5).max(1);
    let (early, late) = (samples.iter().skip(fifth).take(fifth), samples.iter().rev().take(fifth));
    let (early, late) = (middle(early.copied().collect()), middle(late.copied().collect()));
    let flat = late.0 <= early.0 + 32 && late.1 <= early.1 * 1.1 + 2.0;
    Verdict { flat, early, late }
}

fn middle(samples: Vec<Sample>) -> (usize, f64) {
    let mut descriptors: Vec<usize> =
        samples.iter().map(|sample| sample.descriptors / sample.processes.max(1)).collect();
    let each = |sample: &Sample| sample.memory as f64 / 1e6 / sample.processes.max(1) as f64;
    let mut memory: Vec<f64> = samples.iter().map(each).collect();
    descriptors.sort_unstable();
    memory.sort_by(f64::total_cmp);
    let at = samples.len() / 2;
    (descriptors.get(at).copied().unwrap_or(0), memory.get(at).copied().unwrap_or(0.0))
}
