//! Small changes to an input, several at a time.
use rand::Rng;
use rand::rngs::StdRng;

/// Longest input.
const LONGEST: usize = 64 * 1024;

/// `input` after one to eight changes; some of them take a piece of `other` or one of `words`.
pub(crate) fn mutate(input: &[u8], other: &[u8], words: &[&str], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=8) {
        change(&mut bytes, other, words, random);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&str], random: &mut StdRng) {
    let at = random.random_range(0..=bytes.len());
    match random.random_range(0..8) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.random();
            }
        }
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..(at + random.random_range(0..16)).min(bytes.len()))),
        4 => insert(bytes, at, piece(&bytes.clone(), random)),
        5 => insert(bytes, at, piece(other, random)),
        6 => {
            let word = words.get(random.random_range(0..words.len().max(1))).copied().unwrap_or_default();
            insert(bytes, at, word.as_bytes());
        }
        _ => {
            let byte = *b"{}[]\",:0-9.eE\\u\0\xff ".get(random.random_range(0..20)).unwrap_or(&b'{');
            let times = if random.random_ratio(1, 50) { 200 } else { random.random_range(1..4) };
            insert(bytes, at, &vec![byte; times]);
        }
    }
}

fn piece<'a>(from: &'a [u8], random: &mut StdRng) -> &'a [u8] {
    let start = random.random_range(0..=from.len());
    let end = (start + random.random_range(0..64)).min(from.len());
    from.get(start..end).unwrap_or_default()
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    bytes.splice(at..at, what.iter().copied());
}
