//! What somebody probably meant: pure.

/// The word that is nearest to `asked`, when it is near enough to be meant.
pub(crate) fn nearest<'w>(asked: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let (steps, word) = words.map(|word| (distance(asked, word), word)).min()?;
    (steps <= (asked.chars().count() / 3).min(3)).then_some(word)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((right, above_left), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let beside = next.last().copied().unwrap_or_default();
            next.push((above + 1).min(beside + 1).min(above_left + usize::from(left != *right)));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
