//! One request and its answer over the daemon's Unix socket: the little of HTTP/1.1 that this needs, so that the
//! library stays without an HTTP stack. A connection carries one exchange: daemons restart, and a kept connection would
//! make the first request after a restart fail.
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// More than any honest head.
const HEAD_LIMIT: usize = 64 * 1024;
/// More than the list of every service a host can hold.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// A request; header values must be printable.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<&'a [u8]>,
}

/// Status and body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Dials `socket` and exchanges one request; each of the two stages has `limit`.
pub(super) async fn exchange(socket: &Path, request: &Request<'_>, limit: Duration) -> io::Result<Answer> {
    let head = head(request)?;
    let mut stream = within(limit, "accepted no connection", UnixStream::connect(socket)).await?;
    within(limit, "gave no complete answer", async {
        let sent = send(&mut stream, &head, request.body).await;
        // A daemon may answer before it has read everything, and close: its answer says more than the broken pipe.
        match (read_answer(&mut stream, request.method).await, sent) {
            (Err(_), Err(unsent)) => Err(unsent),
            (answer, _) => answer,
        }
    })
    .await
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(ErrorKind::TimedOut, format!("{what} within {limit:?}"))))
}

async fn send(stream: &mut UnixStream, head: &str, body: Option<&[u8]>) -> io::Result<()> {
    stream.write_all(head.as_bytes()).await?;
    if let Some(body) = body {
        stream.write_all(body).await?;
    }
    stream.flush().await
}

fn head(request: &Request<'_>) -> io::Result<String> {
    let mut head = format!("{} {} HTTP/1.1\r\nHost: devmesh\r\nConnection: close\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        if value.is_empty() || !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{name} is not one line of printable text")));
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match request.body {
        Some(body) => {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len()))
        }
        None if request.method == "GET" => head.push_str("\r\n"),
        None => head.push_str("Content-Length: 0\r\n\r\n"),
    }
    Ok(head)
}

/// How the end of a body is known.
enum Framing {
    Length(usize),
    Chunked,
    ToEnd,
}

async fn read_answer(stream: &mut (impl AsyncRead + Unpin), method: &str) -> io::Result<Answer> {
    let mut reader = Reader { stream, held: Vec::new(), at: 0 };
    let (status, framing) = loop {
        let (status, framing) = read_head(&mut reader).await?;
        // 1xx answers precede the answer.
        if status >= 200 {
            break (status, framing);
        }
    };
    let body = match framing {
        _ if method == "HEAD" || status == 204 || status == 304 => Vec::new(),
        Framing::Length(length) => reader.exact(length).await?,
        Framing::Chunked => read_chunks(&mut reader).await?,
        Framing::ToEnd => reader.rest().await?,
    };
    Ok(Answer { status, body })
}

async fn read_head<R: AsyncRead + Unpin>(reader: &mut Reader<'_, R>) -> io::Result<(u16, Framing)> {
    let mut budget = HEAD_LIMIT;
    let status_line = reader.line(&mut budget).await?;
    let status = status_line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse::<u16>().ok())
        .filter(|code| (100..1000).contains(code))
        .ok_or_else(|| broken(&format!("{status_line:?} is not an HTTP status line")))?;
    let mut framing = Framing::ToEnd;
    loop {
        let line = reader.line(&mut budget).await?;
        if line.is_empty() {
            return Ok((status, framing));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken(&format!("{line:?} is not a header")))?;
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.trim().eq_ignore_ascii_case("chunked") {
                return Err(broken(&format!("transfer encoding {value:?} is not understood")));
            }
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length") && !matches!(framing, Framing::Chunked) {
            let length = value.trim().parse().map_err(|_| broken(&format!("content length {value:?}")))?;
            framing = Framing::Length(length);
        }
    }
}

async fn read_chunks<R: AsyncRead + Unpin>(reader: &mut Reader<'_, R>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = reader.line(&mut HEAD_LIMIT.clone()).await?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| broken(&format!("chunk size {line:?}")))?;
        if size == 0 {
            break;
        }
        if body.len().saturating_add(size) > BODY_LIMIT {
            return Err(too_long());
        }
        body.extend(reader.exact(size).await?);
        if !reader.line(&mut HEAD_LIMIT.clone()).await?.is_empty() {
            return Err(broken("a chunk is longer than its size"));
        }
    }
    // Trailers carry nothing for us.
    let mut budget = HEAD_LIMIT;
    while !reader.line(&mut budget).await?.is_empty() {}
    Ok(body)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the answer is not HTTP: {what}"))
}

fn too_long() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the answer is longer than {BODY_LIMIT} bytes"))
}

fn cut() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection ended inside the answer")
}

/// A buffered reader that never holds more than was asked for plus one read.
struct Reader<'a, R> {
    stream: &'a mut R,
    held: Vec<u8>,
    at: usize,
}

impl<R: AsyncRead + Unpin> Reader<'_, R> {
    fn unread(&self) -> &[u8] {
        self.held.get(self.at..).unwrap_or_default()
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> io::Result<bool> {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.reserve(8 * 1024);
        Ok(self.stream.read_buf(&mut self.held).await? > 0)
    }

    /// A line without its end, taken from `budget` bytes.
    async fn line(&mut self, budget: &mut usize) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread().iter().position(|b| *b == b'\n') {
                let line = self.unread().get(..end).unwrap_or_default();
                let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
                self.at += end + 1;
                *budget = budget.checked_sub(end + 1).ok_or_else(|| broken("its head is too long"))?;
                return Ok(text);
            }
            if self.unread().len() > *budget {
                return Err(broken("its head is too long"));
            }
            if !self.fill().await? {
                return Err(cut());
            }
        }
    }

    async fn exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_LIMIT {
            return Err(too_long());
        }
        while self.unread().len() < length {
            if !self.fill().await? {
                return Err(cut());
            }
        }
        let bytes = self.unread().get(..length).unwrap_or_default().to_vec();
        self.at += length;
        Ok(bytes)
    }

    async fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.fill().await? {
            if self.unread().len() > BODY_LIMIT {
                return Err(too_long());
            }
        }
        Ok(self.unread().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> io::Result<Answer> {
        read_answer(&mut text.as_bytes(), "GET").await
    }

    fn ok(body: &str) -> Answer {
        Answer { status: 200, body: body.into() }
    }

    #[tokio::test]
    async fn an_answer_ends_by_length_by_chunks_or_by_the_end() {
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}trailing").await.unwrap(), ok("{}"));
        let chunked =
            "HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n";
        assert_eq!(read(chunked).await.unwrap(), ok("abc0123456789"));
        assert_eq!(read("HTTP/1.0 200 OK\r\n\r\nall of it").await.unwrap(), ok("all of it"));
    }

    #[tokio::test]
    async fn interim_answers_and_bodies_that_cannot_be_are_skipped() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(read(text).await.unwrap(), Answer { status: 204, body: Vec::new() });
    }

    #[tokio::test]
    async fn broken_answers_are_errors_and_never_hang() {
        for text in [
            "",
            "nonsense\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        ] {
            assert!(read(text).await.is_err(), "{text:?}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(HEAD_LIMIT));
        assert!(read(&long).await.is_err());
    }

    #[tokio::test]
    async fn header_values_cannot_carry_a_second_header() {
        let request = Request {
            method: "POST",
            path: "/".into(),
            headers: vec![("Idempotency-Key", "a\r\nX: y".into())],
            body: None,
        };
        assert_eq!(head(&request).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
