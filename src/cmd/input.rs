//! Documents that a verb is given: a file, or standard input.
use crate::exit::Failure;
use std::io::Read;
use std::path::Path;

/// Far above any registry; what is larger is not one.
const LARGEST: u64 = 64 << 20;

/// Reads a file, or standard input for `-`. `what` is the verb, for the sentence.
pub(crate) fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let result = if path == Path::new("-") {
        std::io::stdin().lock().take(LARGEST).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
    };
    match result {
        Ok(_) => Ok(bytes),
        Err(e) if path == Path::new("-") => Err(Failure::config(format!("cannot read {what} stdin: {e}"))),
        Err(e) => Err(Failure::config(format!("cannot read {what} {}: {e}", path.display()))),
    }
}
