//! HTTP without TLS on the TLS port: a redirect where asking again does no harm and leads to something, else what is wrong
//! (proxy rule 20).
use super::HttpContext;
use super::head::{Bounds, Request, Scan, normalise};
use super::hostname;
use super::page::{Page, Problem, render};
use super::serve1::{Scheme, last};
use super::tls::Tls;
use bytes::Bytes;
use httparse::EMPTY_HEADER;
use jiff::Timestamp;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// How long the client may take to read the answer and leave.
const LINGER: Duration = Duration::from_secs(2);

/// Answers the request that has begun to arrive on `stream`, and closes. `port` is the one that it came to.
pub(super) async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    port: u16,
    tls: &Tls,
    context: &HttpContext,
) {
    let limits = &context.limits;
    let bounds = Bounds { bytes: limits.head_bytes, fields: limits.header_count };
    let (mut bytes, mut scan) = (Vec::new(), Scan::default());
    let answer = loop {
        match scan.next(&bytes, bounds) {
            Ok(Some(head)) => break decide(bytes.get(head).unwrap_or_default(), port, tls, context),
            Ok(None) => {}
            Err(_) => break last(&refusal(), false),
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    };
    if stream.write_all(&answer).await.is_ok() && stream.shutdown().await.is_ok() {
        // Closing with unread bytes would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        let drain = async { while matches!(stream.read(&mut rest).await, Ok(n) if n > 0) {} };
        let _ = timeout(LINGER, drain).await;
    }
}

/// The answer to a whole head.
fn decide(head: &[u8], port: u16, tls: &Tls, context: &HttpContext) -> Vec<u8> {
    let mut room = vec![EMPTY_HEADER; context.limits.header_count];
    let Ok(request) = Request::read(head, &mut room, &context.hop) else { return last(&refusal(), false) };
    let is_head = request.method == b"HEAD";
    let mut host = String::new();
    let page = match again(&request) {
        Some(path) if normalise(request.authority, &mut host).is_ok() => match refused(&host, port, tls, context) {
            Some(problem) => render(&problem, request.accept),
            None => redirect(&host, port, &path),
        },
        _ => refusal(),
    };
    last(&page, is_head)
}

/// Path and query of what may be asked again elsewhere.
fn again(request: &Request<'_, '_>) -> Option<String> {
    let (before, path) = request.target.pieces(request.method);
    let path = [before, path].concat();
    let plain = matches!(request.method, b"GET" | b"HEAD") && path.iter().all(u8::is_ascii_graphic);
    String::from_utf8(path).ok().filter(|_| plain)
}

/// Why asking again would lead nowhere.
fn refused(host: &str, port: u16, tls: &Tls, context: &HttpContext) -> Option<Problem> {
    let known = match hostname::is_reserved(host) {
        true => host == hostname::OWN && context.own.is_some(),
        false => context.routes.find(host).is_some(),
    };
    if !known {
        return Some(context.unknown_host(host, Scheme::Https, port));
    }
    (!tls.serves(host, Timestamp::now())).then(|| Problem::NoCertificate { host: host.to_owned() })
}

/// The port is the one that is listened on, whatever the client wrote: without TLS it may have come by another name of it.
fn redirect(host: &str, port: u16, path: &str) -> Page {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    Page {
        status: 307,
        content_type: "text/plain; charset=utf-8",
        headers: vec![("Location", format!("{}{path}", hostname::url(Scheme::Https.as_str(), &host, port)))],
        body: Bytes::new(),
    }
}

/// The contract's words (mesh contract §6.2).
fn refusal() -> Page {
    Page {
        status: 400,
        content_type: "text/plain; charset=utf-8",
        headers: vec![("X-Content-Type-Options", "nosniff".to_owned())],
        body: Bytes::from_static(b"Client sent an HTTP request to an HTTPS server.\n"),
    }
}
