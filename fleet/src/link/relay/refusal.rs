//! Why the far side opens no stream: a code that programs read, and a sentence for people.
use crate::fault::Class;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::io;

/// Header of the code, and of the sentence.
const CODE: &str = "stado-refusal";
const SENTENCE: &str = "stado-sentence";

/// Why a stream is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Nothing listens at the endpoint.
    Refused,
    /// The endpoint does not answer, or its host cannot be reached.
    Unreachable,
    /// The directory of the far host places no such endpoint there.
    NotPlaced,
    /// This client may not reach it.
    Forbidden,
    /// The far host has no room: descriptors, memory, streams.
    NoRoom,
    /// Not understood.
    Unknown,
}

const WORDS: [(Code, &str, StatusCode, &str); 6] = [
    (Code::Refused, "refused", StatusCode::BAD_GATEWAY, "connect failed"),
    (Code::Unreachable, "unreachable", StatusCode::GATEWAY_TIMEOUT, "connect failed"),
    (Code::NotPlaced, "not-placed", StatusCode::NOT_FOUND, "administratively prohibited"),
    (Code::Forbidden, "forbidden", StatusCode::FORBIDDEN, "administratively prohibited"),
    (Code::NoRoom, "no-room", StatusCode::SERVICE_UNAVAILABLE, "resource shortage"),
    (Code::Unknown, "unknown", StatusCode::INTERNAL_SERVER_ERROR, "refused"),
];

/// Code and sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Code.
    pub code: Code,
    /// Sentence.
    pub sentence: String,
}

impl Refusal {
    /// Of a code and a sentence.
    pub fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into() }
    }

    /// Of a failed connect to `endpoint`.
    pub(super) fn connect(endpoint: std::net::SocketAddr, error: &io::Error) -> Self {
        use rustix::io::Errno;
        let full = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
        let is_full = error.raw_os_error().is_some_and(|code| full.iter().any(|e| e.raw_os_error() == code));
        let code = match error.kind() {
            _ if is_full => Code::NoRoom,
            io::ErrorKind::ConnectionRefused => Code::Refused,
            _ => Code::Unreachable,
        };
        Self::new(code, format!("connect to {endpoint}: {error}"))
    }

    /// As direct-tcpip channels name it.
    pub(in crate::link) fn words(&self) -> String {
        let kind = WORDS.iter().find(|row| row.0 == self.code).map_or("refused", |row| row.3);
        format!("{kind}: {}", self.sentence)
    }

    /// Class for retries.
    pub(in crate::link) fn class(&self) -> Class {
        if self.code == Code::Unreachable { Class::Timeout } else { Class::Refused }
    }

    /// As an answer to CONNECT.
    pub(super) fn response(&self) -> Response<()> {
        let status = WORDS.iter().find(|row| row.0 == self.code).map_or(StatusCode::INTERNAL_SERVER_ERROR, |row| row.2);
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = self.headers();
        response
    }

    /// As headers: of an answer, or behind a stream on which nothing came. Who does not know them there reads an end.
    pub(super) fn headers(&self) -> HeaderMap {
        let word = WORDS.iter().find(|row| row.0 == self.code).map_or("unknown", |row| row.1);
        let text: Vec<u8> = self.sentence.bytes().map(|b| if b < b' ' || b == 0x7f { b' ' } else { b }).collect();
        let mut headers = HeaderMap::new();
        headers.insert(CODE, HeaderValue::from_static(word));
        if let Ok(sentence) = HeaderValue::from_bytes(&text) {
            headers.insert(SENTENCE, sentence);
        }
        headers
    }

    /// From an answer that is not 200. A code of a later version counts as unknown.
    pub(super) fn read(response: &Response<RecvStream>) -> Self {
        let refusal = Self::of(response.headers()).unwrap_or_else(|| Self::new(Code::Unknown, ""));
        match refusal.sentence.is_empty() {
            true => Self { sentence: format!("it answered {}", response.status()), ..refusal },
            false => refusal,
        }
    }

    /// From headers that hold one.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let header = |name| headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
        let word = header(CODE)?;
        let code = WORDS.iter().find(|row| row.1 == word).map_or(Code::Unknown, |row| row.0);
        Some(Self { code, sentence: header(SENTENCE).unwrap_or_default() })
    }
}

/// How an error of h2 looks to those who copy a stream. `lost` is the sentence for a lost session.
pub(super) fn as_io(error: &h2::Error, lost: impl FnOnce() -> String) -> io::Error {
    match error.reason() {
        // An end that is told to one stream; what is told to all of them means that they are lost.
        Some(reason) if error.is_reset() => reset(reason),
        _ => io::Error::new(io::ErrorKind::ConnectionAborted, lost()),
    }
}

pub(super) fn reset(reason: Reason) -> io::Error {
    let why = match reason {
        Reason::CONNECT_ERROR | Reason::CANCEL => "the other end reset the stream".to_owned(),
        other => format!("the other end reset the stream: {}", other.description()),
    };
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}
