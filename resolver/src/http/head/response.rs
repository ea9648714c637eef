//! What a response's head says.
use super::field::{Kind, Options, kind};
use super::length::Lengths;
use super::request::fields;
use super::{Refused, Version};
use crate::http::framing::Framing;
use httparse::Header;

/// One response head that may be passed on.
#[derive(Debug)]
pub(in crate::http) struct Response<'h, 'b> {
    pub(in crate::http) status: u16,
    pub(in crate::http) framing: Framing,
    /// The backend keeps its connection after this answer.
    pub(in crate::http) persists: bool,
    /// Everything after the version: ` 200 OK`.
    pub(super) status_line: &'b [u8],
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) options: Options,
    pub(super) fields: &'h [Header<'b>],
}

impl<'h, 'b> Response<'h, 'b> {
    /// All fields, as the backend wrote them.
    pub(in crate::http) fn fields(&self) -> &[Header<'b>] {
        self.fields
    }

    /// Reads one whole head. `to_head`: it answers a HEAD. The error says what is wrong with it.
    pub(in crate::http) fn read(
        head: &'b [u8],
        to_head: bool,
        room: &'h mut [Header<'b>],
    ) -> Result<Self, &'static str> {
        let (version, status, status_line, rest) = status_line(head)?;
        let fields = fields(rest, room).map_err(|refused| match refused {
            Refused::Bad(why) => why,
            Refused::TooLarge | Refused::Version => "more fields than are allowed",
        })?;
        let (mut lengths, mut options) = (Lengths::default(), Options::default());
        for field in fields {
            match kind(field.name) {
                Kind::Connection => options.read(field.value),
                Kind::ContentLength => lengths.content_length(field.value)?,
                Kind::TransferEncoding => lengths.transfer_encoding(field.value)?,
                _ => {}
            }
        }
        lengths.check()?;
        if lengths.chunked && version == Version::Http10 {
            return Err("Transfer-Encoding in HTTP/1.0");
        }
        let framing = match lengths {
            _ if to_head || matches!(status, 100..=199 | 204 | 304) => Framing::None,
            Lengths { chunked: true, .. } => Framing::Chunked,
            Lengths { length: Some(length), .. } => Framing::Length(length),
            Lengths { length: None, .. } => Framing::Close,
        };
        Ok(Self {
            status,
            framing,
            persists: options.persists(version) && framing != Framing::Close,
            status_line,
            length: lengths.length,
            chunked: lengths.chunked,
            options,
            fields,
        })
    }
}

type Line<'b> = (Version, u16, &'b [u8], &'b [u8]);

fn status_line(head: &[u8]) -> Result<Line<'_>, &'static str> {
    const MALFORMED: &str = "the status line is not `HTTP/1.1 200 OK`";
    let end = memchr::memchr(b'\r', head).ok_or(MALFORMED)?;
    let (line, rest) = head.split_at_checked(end).ok_or(MALFORMED)?;
    let rest = rest.strip_prefix(b"\r\n").ok_or(MALFORMED)?;
    let (version, line) = line.split_at_checked(8).ok_or(MALFORMED)?;
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => return Err(MALFORMED),
    };
    let (&[b' ', a @ b'1'..=b'9', b, c], reason) = line.split_first_chunk::<4>().ok_or(MALFORMED)? else {
        return Err(MALFORMED);
    };
    let text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    if !b.is_ascii_digit() || !c.is_ascii_digit() || !matches!(reason, [] | [b' ', ..]) || !reason.iter().all(text) {
        return Err(MALFORMED);
    }
    let status = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
    Ok((version, status, line, rest))
}
/// Whether bytes may be the begin of an answer, however few they are; empty lines may stand before it.
pub(in crate::http) fn begins_http(bytes: &[u8]) -> bool {
    const WORD: &[u8] = b"HTTP/";
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    bytes.iter().skip(start).zip(WORD).all(|(a, b)| a == b)
}
