//! Does a service answer: an HTTP status below 500 for `http`, an accepted connection for anything else.
use super::Probe;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest status line that is read.
const LINE: usize = 1024;

/// Asks over a connection that was just opened; the reason in words when the answer is no.
///
/// # Errors
/// Why it does not count as an answer.
pub async fn ask<S: AsyncRead + AsyncWrite + Unpin>(probe: &Probe, mut stream: S) -> Result<(), String> {
    if probe.url.scheme() != "http" {
        return Ok(());
    }
    let query = probe.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let (path, host) = (probe.url.path(), probe.url.host_str().unwrap_or_default());
    let port = probe.url.port_or_known_default().unwrap_or_default();
    let request =
        format!("GET {path}{query} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| e.to_string())?;
    let mut heard = Vec::new();
    while heard.len() < LINE && !heard.contains(&b'\n') {
        match stream.read_buf(&mut heard).await {
            Ok(0) => return Err("it closed the connection before it answered".to_owned()),
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    let line = String::from_utf8_lossy(heard.split(|b| *b == b'\n').next().unwrap_or_default()).trim_end().to_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
    match status {
        Some(status) if status < 500 => Ok(()),
        Some(status) => Err(format!("it answered HTTP {status}")),
        None => Err("it answered something that is not HTTP".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use url::Url;

    fn probe(url: &str) -> Probe {
        Probe { service: "notes".into(), url: Url::parse(url).unwrap(), within: Duration::from_secs(1) }
    }

    async fn answered(answer: &'static str) -> (Result<(), String>, String) {
        let (near, mut far) = tokio::io::duplex(4096);
        let server = tokio::spawn(async move {
            let mut heard = vec![0; 4096];
            let n = far.read(&mut heard).await.unwrap();
            far.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(heard[..n].to_vec()).unwrap()
        });
        (ask(&probe("http://127.0.0.1:8080/health?deep=1"), near).await, server.await.unwrap())
    }

    #[tokio::test]
    async fn a_status_below_500_counts_and_nothing_else_does() {
        let (result, asked) = answered("HTTP/1.1 200 OK\r\n\r\n").await;
        assert_eq!(result, Ok(()));
        assert!(asked.starts_with("GET /health?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{asked}");
        assert_eq!(answered("HTTP/1.0 401 no\r\n").await.0, Ok(()));
        assert_eq!(answered("HTTP/1.1 503 no\r\n").await.0, Err("it answered HTTP 503".into()));
        assert_eq!(answered("SSH-2.0-x\r\n").await.0, Err("it answered something that is not HTTP".into()));
        assert_eq!(answered("HTTP/1.1").await.0, Err("it closed the connection before it answered".into()));
    }

    #[tokio::test]
    async fn a_connection_is_enough_for_other_schemes() {
        let (near, _far) = tokio::io::duplex(16);
        assert_eq!(ask(&probe("tcp://localhost:5432"), near).await, Ok(()));
    }

    #[test]
    fn addresses_are_those_of_the_url() {
        let addresses = |url: &str| probe(url).addresses().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(addresses("http://127.0.0.1:80/x"), ["127.0.0.1:80"]);
        assert_eq!(addresses("tcp://[::1]:5432"), ["[::1]:5432"]);
        assert_eq!(addresses("tcp://localhost:5432"), ["127.0.0.1:5432", "[::1]:5432"]);
    }
}
