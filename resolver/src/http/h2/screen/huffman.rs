//! How long a text is that was written in HPACK's code (RFC 7541, Appendix B). The code is canonical: how many symbols have how
//! many bits says it all, as long as nobody asks which symbols they are.

/// Symbols of so many bits.
const SYMBOLS: [u32; 31] =
    [0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4];
/// A colon is the first symbol of seven bits.
const COLON: (usize, u32) = (7, 0);

/// Its length in symbols, and whether the first one is a colon.
pub(super) fn measure(coded: &[u8]) -> (usize, bool) {
    let (mut symbols, mut colon) = (0, false);
    let (mut code, mut first, mut bits) = (0u32, 0u32, 0usize);
    for byte in coded {
        for at in (0..8).rev() {
            code = (code << 1) | u32::from((byte >> at) & 1);
            first <<= 1;
            bits += 1;
            let Some(count) = SYMBOLS.get(bits) else { return (symbols, colon) };
            match code.checked_sub(first) {
                Some(nth) if nth < *count => {
                    colon |= symbols == 0 && (bits, nth) == COLON;
                    symbols += 1;
                    (code, first, bits) = (0, 0, 0);
                }
                _ => first += count,
            }
        }
    }
    // What is left is padding.
    (symbols, colon)
}
