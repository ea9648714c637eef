//! Registration ids and lease tokens (mesh contract §1.3).
use jiff::Timestamp;
use rand::RngCore;

const BASE36: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// 24 characters `[0-9A-Z]`: base-36 milliseconds, then 80 random bits; sortable by time.
pub(crate) fn registration_id(wall: Timestamp) -> String {
    let mut random = [0u8; 10];
    rand::rng().fill_bytes(&mut random);
    spell(u64::try_from(wall.as_millisecond()).unwrap_or(0), random)
}

/// 64 lower-case hex characters: 256 bits from the system's generator.
pub(crate) fn lease_token() -> String {
    let mut random = [0u8; 32];
    rand::rng().fill_bytes(&mut random);
    hex::encode(random)
}

fn spell(mut millis: u64, random: [u8; 10]) -> String {
    let mut head = Vec::with_capacity(8);
    while millis > 0 || head.len() < 8 {
        head.push(digit(BASE36, millis % 36));
        millis /= 36;
    }
    let bits = random.iter().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let tail = (0..16).rev().map(|place| digit(BASE32, (bits >> (5 * place) & 31) as u64));
    head.into_iter().rev().chain(tail).collect()
}

fn digit(alphabet: &[u8], value: u64) -> char {
    usize::try_from(value).ok().and_then(|at| alphabet.get(at)).map_or('0', |byte| char::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_24_characters_and_sort_by_time() {
        let at = |text: &str| registration_id(text.parse().unwrap());
        let (early, late) = (at("2026-11-30T01:03:00Z"), at("2026-11-30T01:03:00.001Z"));
        assert_eq!((early.len(), late.len()), (24, 24));
        assert!(early < late && early.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()));
        assert_eq!(spell(36, [0; 10]), "00000010AAAAAAAAAAAAAAAA");
        assert_eq!(&spell(0, [0xff; 10])[8..], "7777777777777777");
    }

    #[test]
    fn tokens_have_64_hex_characters_and_differ() {
        let (a, b) = (lease_token(), lease_token());
        assert!(a.len() == 64 && a.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')));
        assert_ne!(a, b);
    }
}
