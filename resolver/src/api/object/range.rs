//! `Range: bytes=…` of one range (RFC 9110 §14). Pure.

/// What a request asks of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: no range was asked, or one that is not understood, which is as none.
    Whole,
    /// These bytes, the last included.
    Bytes { first: u64, last: u64 },
    /// A range that no byte of the object is in.
    Outside,
}

/// Reads the header's value for an object of `size` bytes. Several ranges are answered with the whole object.
pub(super) fn part(header: Option<&str>, size: u64) -> Part {
    let Some(spec) = header.and_then(|h| h.trim().strip_prefix("bytes=")) else { return Part::Whole };
    let Some((first, last)) = spec.split_once('-').map(|(first, last)| (first.trim(), last.trim())) else {
        return Part::Whole;
    };
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    match (first.is_empty(), last.is_empty()) {
        (true, true) => Part::Whole,
        (true, false) => match number(last) {
            None => Part::Whole,
            Some(0) => Part::Outside,
            Some(_) if size == 0 => Part::Outside,
            Some(length) => Part::Bytes { first: size.saturating_sub(length), last: size - 1 },
        },
        (false, open) => match (number(first), if open { Some(u64::MAX) } else { number(last) }) {
            (Some(first), Some(last)) if first > last => Part::Whole,
            (Some(first), Some(_)) if first >= size => Part::Outside,
            (Some(first), Some(last)) => Part::Bytes { first, last: last.min(size - 1) },
            _ => Part::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        let of = |text: &str| part(Some(text), 10);
        let bytes = |first, last| Part::Bytes { first, last };
        assert_eq!(part(None, 10), Part::Whole);
        for (text, wanted) in [
            ("bytes=0-0", bytes(0, 0)),
            ("bytes=2-5", bytes(2, 5)),
            ("bytes=2-", bytes(2, 9)),
            ("bytes=2-99", bytes(2, 9)),
            ("bytes=-3", bytes(7, 9)),
            ("bytes=-99", bytes(0, 9)),
            ("bytes=10-", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=-", Part::Whole),
            ("lines=1-2", Part::Whole),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
        assert_eq!(part(Some("bytes=0-"), 0), Part::Outside);
        assert_eq!(part(Some("bytes=-1"), 0), Part::Outside);
    }
}
