//! The trailer section: read whole, checked, and passed on without the fields that must not come late.
use crate::http::head::{Bounds, Scan, is_kept_in_trailers};
use httparse::{EMPTY_HEADER, Status};

/// What a trailer section may hold.
const BOUNDS: Bounds = Bounds { bytes: 16 << 10, fields: 64 };

/// Collects the section and its empty line.
#[derive(Debug, Default)]
pub(super) struct Trailers {
    bytes: Vec<u8>,
    scan: Scan,
    whole: bool,
}

impl Trailers {
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Takes what belongs to the section.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        for (at, byte) in bytes.iter().enumerate() {
            self.bytes.push(*byte);
            if *byte == b'\n' && self.line_ends()? {
                self.whole = true;
                return Ok(at + 1);
            }
            if self.bytes.len() > BOUNDS.bytes {
                return Err("the trailer section is too long");
            }
        }
        Ok(bytes.len())
    }

    /// Whether the section is over with this line.
    fn line_ends(&mut self) -> Result<bool, &'static str> {
        if self.bytes == b"\r\n" {
            return Ok(true);
        }
        const MALFORMED: &str = "the trailer section is malformed";
        let Some(whole) = self.scan.next(&self.bytes, BOUNDS).map_err(|_| MALFORMED)? else { return Ok(false) };
        let mut fields = [EMPTY_HEADER; BOUNDS.fields];
        let section = self.bytes.get(whole).unwrap_or_default();
        let Ok(Status::Complete((used, fields))) = httparse::parse_headers(section, &mut fields) else {
            return Err(MALFORMED);
        };
        if used != section.len() {
            return Err(MALFORMED);
        }
        let mut kept = Vec::with_capacity(section.len());
        for field in fields.iter().filter(|field| is_kept_in_trailers(field.name)) {
            for piece in [field.name.as_bytes(), b": ", field.value, b"\r\n"] {
                kept.extend_from_slice(piece);
            }
        }
        kept.extend_from_slice(b"\r\n");
        self.bytes = kept;
        Ok(true)
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}
