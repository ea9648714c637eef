//! One request and its answer on a connection of its own. Nothing is retried, no redirect is followed.
use super::origin::Origin;
use super::tls;
use crate::fault::Class;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// To be connected.
const CONNECT: Duration = Duration::from_secs(15);
/// Without a byte of the answer. There is no limit on the whole: a large answer on a slow line keeps moving.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

/// What is asked.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) body: Bytes,
    pub(crate) token: &'a str,
    /// Further headers.
    pub(crate) headers: &'a [(&'static str, &'a str)],
    /// Largest answer.
    pub(crate) limit: usize,
    pub(crate) ca_file: Option<&'a Path>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// `X-Stado-Version`.
    pub(crate) version: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// No answer.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) why: String,
    pub(crate) class: Class,
    /// Whether the other side may have read the request.
    pub(crate) sent: bool,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl Lost {
    fn before(class: Class, why: impl Into<String>) -> Self {
        Self { why: why.into(), class, sent: false }
    }
    fn after(class: Class, why: impl Into<String>) -> Self {
        Self { why: why.into(), class, sent: true }
    }
}

pub(crate) async fn exchange(origin: &Origin, ask: Ask<'_>) -> Result<Reply, Lost> {
    let late = || Lost::before(Class::Timeout, format!("{origin} gave no connection within {}s", CONNECT.as_secs()));
    let tcp = async {
        let tcp = TcpStream::connect(origin.authority()).await;
        tcp.map_err(|e| Lost::before(Class::InfraDown, format!("connect to {origin} failed: {e}")))
    };
    if !origin.https {
        let tcp = timeout(CONNECT, tcp).await.map_err(|_| late())??;
        return over(tcp, origin, ask).await;
    }
    let (ca_file, host) = (ask.ca_file.map(Path::to_owned), origin.host.clone());
    let secured = async {
        let unusable = |e: String| Lost::before(Class::Config, e);
        let name = tls::server_name(&host).map_err(unusable)?;
        // Reading the system's roots takes files.
        let connector = tokio::task::spawn_blocking(move || tls::connector(ca_file.as_deref())).await;
        let connector = connector.map_err(|e| unusable(e.to_string()))?.map_err(unusable)?;
        let tls = connector.connect(name, tcp.await?).await;
        tls.map_err(|e| Lost::before(tls_class(&e), format!("TLS with {origin} failed: {e}")))
    };
    let tls = timeout(CONNECT, secured).await.map_err(|_| late())??;
    over(tls, origin, ask).await
}

/// A certificate that is not trusted stays untrusted.
fn tls_class(e: &std::io::Error) -> Class {
    use tokio_rustls::rustls::Error;
    match e.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_)) => Class::Auth,
        _ => Class::InfraDown,
    }
}

async fn over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    origin: &Origin,
    ask: Ask<'_>,
) -> Result<Reply, Lost> {
    let limit = ask.limit;
    let request = request(origin, ask).map_err(|e| Lost::before(Class::Config, e))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|e| Lost::before(Class::InfraDown, format!("{origin}: {e}")))?;
    let driver = Driver(tokio::spawn(async move {
        // Its error is also the request's.
        let _ = connection.await;
    }));
    let head = timeout(SILENCE, sender.send_request(request)).await.map_err(|_| silent(origin))?;
    let head = head.map_err(|e| Lost::after(Class::InfraDown, format!("{origin} ended the request: {}", whole(&e))))?;
    let reply = read(origin, head, limit).await;
    drop(driver);
    reply
}

/// Ends with the request, however that ends.
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn request(origin: &Origin, ask: Ask<'_>) -> Result<Request<Full<Bytes>>, String> {
    let mut bearer =
        hyper::header::HeaderValue::from_str(&format!("Bearer {}", ask.token)).map_err(|e| e.to_string())?;
    bearer.set_sensitive(true);
    let further = ask.headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
    let request = further
        .method(ask.method)
        .uri(ask.target)
        .header("host", origin.authority())
        .header("accept", "application/json")
        .header("authorization", bearer)
        .header("connection", "close")
        .body(Full::new(ask.body));
    request.map_err(|e| e.to_string())
}

async fn read(origin: &Origin, head: Response<Incoming>, limit: usize) -> Result<Reply, Lost> {
    let status = head.status().as_u16();
    let version = head.headers().get("x-stado-version").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let mut incoming = head.into_body();
    let mut body = Vec::new();
    while let Some(frame) = timeout(SILENCE, incoming.frame()).await.map_err(|_| silent(origin))? {
        let frame =
            frame.map_err(|e| Lost::after(Class::InfraDown, format!("{origin} ended its answer: {}", whole(&e))))?;
        if let Some(data) = frame.data_ref() {
            if body.len() + data.len() > limit {
                return Err(Lost::after(Class::Refused, format!("the answer of {origin} exceeds {limit} bytes")));
            }
            body.extend_from_slice(data);
        }
    }
    Ok(Reply { status, version, body })
}

fn silent(origin: &Origin) -> Lost {
    Lost::after(Class::Timeout, format!("{origin} sent nothing for {}s", SILENCE.as_secs()))
}

/// An error with its causes: hyper's own words leave out what the system said.
fn whole(e: &hyper::Error) -> String {
    let mut text = e.to_string();
    let mut cause = std::error::Error::source(e);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
