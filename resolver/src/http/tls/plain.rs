//! HTTP without TLS on the TLS port: a redirect where asking again does no harm, else a clear 400 (proxy rule 20).
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// A head that is longer is not read to its end.
const LONGEST: usize = 16 << 10;
/// How long the client may take to read the answer and leave.
const LINGER: Duration = Duration::from_secs(2);

/// Answers the request that has begun to arrive on `stream`, and closes.
pub(super) async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut head = Vec::new();
    let answer = loop {
        if let Some(answer) = decide(&head) {
            break answer;
        }
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    };
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        // Closing with unread bytes would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        let drain = async { while matches!(stream.read(&mut rest).await, Ok(n) if n > 0) {} };
        let _ = timeout(LINGER, drain).await;
    }
}

/// The answer to a head, `None` while it is not whole.
fn decide(head: &[u8]) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() < LONGEST => None,
        Ok(httparse::Status::Complete(_)) => Some(redirect(&request).unwrap_or_else(refusal)),
        _ => Some(refusal()),
    }
}

/// Where the same request is answered over TLS. The host is the one the client came with, port included.
fn redirect(request: &httparse::Request<'_, '_>) -> Option<String> {
    if !matches!(request.method, Some("GET" | "HEAD")) {
        return None;
    }
    let path = request.path.filter(|path| path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()))?;
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = std::str::from_utf8(hosts.next()?.value).ok()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b);
    if hosts.next().is_some() || host.is_empty() || !host.bytes().all(plain) {
        return None;
    }
    Some(format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://{host}{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
}

/// The contract's words (mesh contract §6.2).
fn refusal() -> String {
    let text = "Client sent an HTTP request to an HTTPS server.\n";
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(head: &str) -> Option<String> {
        decide(head.as_bytes()).map(|answer| answer.lines().take(2).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn what_may_be_asked_again_is_sent_to_https_and_the_rest_is_told() {
        let moved = |to: &str| Some(format!("HTTP/1.1 307 Temporary Redirect|Location: {to}"));
        let bad = Some("HTTP/1.1 400 Bad Request|Content-Type: text/plain; charset=utf-8".to_owned());
        assert_eq!(line("GET /a?b=%20 HTTP/1.1\r\nHost: A.test:8443\r\n\r\n"), moved("https://A.test:8443/a?b=%20"));
        assert_eq!(line("HEAD / HTTP/1.0\r\nhost: [::1]:8443\r\n\r\n"), moved("https://[::1]:8443/"));
        assert_eq!(line("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx"), bad);
        assert_eq!(line("GET / HTTP/1.1\r\n\r\n"), bad);
        assert_eq!(line("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), bad);
        assert_eq!(line("GET / HTTP/1.1\r\nHost: a@b/\r\n\r\n"), bad);
        assert_eq!(line("GET http://x/ HTTP/1.1\r\nHost: a\r\n\r\n"), bad);
        assert_eq!(line("PRI * HTTP/2.0\r\n\r\n"), bad);
        assert_eq!(line("GET / HT"), None);
        assert_eq!(line(&format!("GET /{} ", "x".repeat(LONGEST))), bad);
    }
}
