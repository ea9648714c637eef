//! The answer of a host, line by line. It comes from another machine: nothing in it is trusted to be well formed.
use super::script::{BEGIN, END};

/// Bytes of an answer that is none, in the sentence that refuses it.
const QUOTED: usize = 80;

/// The lines of a whole answer: a word, and its values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts(Vec<Fact>);

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    word: String,
    values: Vec<Vec<u8>>,
}

impl Facts {
    /// Reads an answer. What a login says before it is skipped.
    pub(crate) fn parse(stdout: &[u8]) -> Result<Self, String> {
        let mut lines = stdout.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        if !lines.any(|line| line == BEGIN.as_bytes()) {
            let said = crate::ui::clean::bytes_line(stdout.get(..QUOTED).unwrap_or(stdout));
            return Err(format!("the host's answer is no inventory; it begins with \"{said}\""));
        }
        let mut facts = Vec::new();
        for line in lines {
            if line == END.as_bytes() {
                return Ok(Self(facts));
            }
            facts.extend(fact(line));
        }
        Err("the host's answer ended before its end".to_owned())
    }

    /// Every line of one kind.
    pub(crate) fn all<'f>(&'f self, word: &'f str) -> impl Iterator<Item = &'f Fact> {
        self.0.iter().filter(move |fact| fact.word == word)
    }

    /// The first line of one kind.
    pub(crate) fn one<'f>(&'f self, word: &'f str) -> Option<&'f Fact> {
        self.all(word).next()
    }
}

impl Fact {
    /// A value; empty when it is not there.
    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        self.values.get(at).map_or(&[], Vec::as_slice)
    }

    /// A value as text, for comparing; what is no text is replaced.
    pub(crate) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.bytes(at)).into_owned()
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// A line without a word, or with a value that is not what it says, is no fact.
fn fact(line: &[u8]) -> Option<Fact> {
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let word = std::str::from_utf8(words.next()?).ok()?.to_owned();
    let value = |word: &[u8]| match word.strip_prefix(b"x") {
        Some(digits) => unhex(digits),
        None => Some(word.to_owned()),
    };
    Some(Fact { word, values: words.map(value).collect::<Option<_>>()? })
}

/// Bytes from their hex digits.
pub(super) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_answer_is_read_after_whatever_a_login_says() {
        let answer =
            b"Welcome!\r\nstado-inventory 1\nhost x6465\n\nowner 12 34\nempty x\nstado-inventory end\nafter x00\n";
        let facts = Facts::parse(answer).unwrap();
        assert_eq!(facts.one("host").unwrap().text(0), "de");
        assert_eq!((facts.one("owner").unwrap().text(1), facts.one("owner").unwrap().len()), ("34".into(), 2));
        assert_eq!(facts.one("empty").unwrap().bytes(0), b"");
        assert_eq!(facts.one("after"), None);
        assert_eq!(facts.one("host").unwrap().bytes(7), b"");
    }

    #[test]
    fn a_part_of_an_answer_and_something_else_are_refused() {
        let error = Facts::parse(b"stado-inventory 1\nhost x64\n").unwrap_err();
        assert_eq!(error, "the host's answer ended before its end");
        let error = Facts::parse(b"\x1b[2Jgo away").unwrap_err();
        assert!(error.ends_with("it begins with \"\\u{1b}[2Jgo away\""), "{error}");
    }

    #[test]
    fn a_value_that_is_no_hex_is_no_fact() {
        let facts = Facts::parse(b"stado-inventory 1\nhost xzz\nhost x6\nhost x61\nstado-inventory end").unwrap();
        assert_eq!(facts.all("host").map(|fact| fact.text(0)).collect::<Vec<_>>(), ["a"]);
    }

    proptest! {
        #[test]
        fn nothing_that_a_host_says_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Facts::parse(&bytes);
            let framed = [BEGIN.as_bytes(), b"\n", &bytes, b"\n", END.as_bytes()].concat();
            let _ = Facts::parse(&framed);
        }
    }
}
