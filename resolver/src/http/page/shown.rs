//! What somebody else wrote, made fit to be shown: it cannot move a terminal's cursor, turn the direction of a line or fill
//! the screen.

/// Longest piece that is repeated, in characters.
const LONGEST: usize = 300;

/// `text` with every character that is not simply visible replaced, cut after [`LONGEST`] characters.
pub fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '\u{fffd}' }).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

fn is_plain(c: char) -> bool {
    let steers = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !steers
}
