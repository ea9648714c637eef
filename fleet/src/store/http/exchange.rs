//! One request and its answer on a connection of its own.
use super::{Origin, Tls, tls};
use crate::fault::Class;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A line that carries less than this is as good as one that carries nothing: what a large request may take longer.
const SLOWEST: u64 = 64 << 10;

/// How long a connection that has ended may take to say why.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// To be connected, TLS included.
    pub(crate) connect: Duration,
    /// Without a byte of the answer. There is no limit on the whole: a large answer on a slow line keeps moving.
    pub(crate) silence: Duration,
}

impl Deadlines {
    /// Of an object API (§2.4) and of a vault.
    pub(crate) const USUAL: Self = Self { connect: Duration::from_secs(15), silence: Duration::from_secs(60) };

    /// Until the first byte of the answer; a large request takes its time to be sent.
    fn head(self, body: usize) -> Duration {
        self.silence + Duration::from_secs(u64::try_from(body).unwrap_or(u64::MAX) / SLOWEST)
    }
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    /// `Host` is the origin's where it is not given here.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Largest answer.
    pub(crate) limit: usize,
}

impl Ask {
    /// Without headers and body.
    pub(crate) fn new(method: Method, target: impl Into<String>, limit: usize) -> Self {
        Self { method, target: target.into(), headers: HeaderMap::new(), body: Bytes::new(), limit }
    }

    /// Of an API that answers in JSON and knows who asks by a bearer token.
    pub(crate) fn bearer(method: Method, target: impl Into<String>, limit: usize, token: &str) -> Result<Self, Lost> {
        let mut ask = Self::new(method, target, limit);
        ask.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        ask.secret(header::AUTHORIZATION, &format!("Bearer {token}")).map_err(|e| Lost::before(Class::Config, e))
    }

    /// With a header whose value is a secret: it is in no debug output.
    pub(crate) fn secret(mut self, name: header::HeaderName, value: &str) -> Result<Self, String> {
        let mut value = HeaderValue::from_str(value).map_err(|e| e.to_string())?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// No answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Lost {
    pub(crate) why: String,
    pub(crate) class: Class,
    /// Whether the other side may have read the request.
    pub(crate) sent: bool,
}

impl Lost {
    pub(crate) fn before(class: Class, why: impl Into<String>) -> Self {
        Self { why: why.into(), class, sent: false }
    }
    fn after(class: Class, why: impl Into<String>) -> Self {
        Self { why: why.into(), class, sent: true }
    }
}

/// The head of an answer, and its body as it comes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    origin: Origin,
    silence: Duration,
    body: Incoming,
    _driver: Driver,
}

impl Answer {
    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Lost> {
        loop {
            let Some(frame) = timeout(self.silence, self.body.frame()).await.map_err(|_| self.silent())? else {
                return Ok(None);
            };
            let ended = |e: hyper::Error| {
                Lost::after(Class::InfraDown, format!("{} ended its answer: {}", self.origin, whole(&e)))
            };
            if let Ok(data) = frame.map_err(ended)?.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// From now on, this long may pass without a byte.
    pub(crate) fn may_be_silent(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// All of it.
    pub(crate) async fn all(mut self, limit: usize) -> Result<Reply, Lost> {
        let mut body = Vec::new();
        while let Some(data) = self.next().await? {
            if body.len() + data.len() > limit {
                let why = format!("the answer of {} exceeds {limit} bytes", self.origin);
                return Err(Lost::after(Class::Refused, why));
            }
            body.extend_from_slice(&data);
        }
        Ok(Reply { status: self.status, headers: self.headers, body })
    }

    fn silent(&self) -> Lost {
        silent(&self.origin, self.silence)
    }
}

/// Asks, and reads the whole answer.
pub(crate) async fn exchange(origin: &Origin, tls: &Tls, deadlines: Deadlines, ask: Ask) -> Result<Reply, Lost> {
    let limit = ask.limit;
    open(origin, tls, deadlines, ask).await?.all(limit).await
}

/// Asks, and reads the head of the answer.
pub(crate) async fn open(origin: &Origin, tls: &Tls, deadlines: Deadlines, ask: Ask) -> Result<Answer, Lost> {
    let late = || {
        let why = format!("{origin} gave no connection within {}s", seconds(deadlines.connect));
        Lost::before(Class::Timeout, why)
    };
    let tcp = async {
        let tcp = TcpStream::connect(origin.authority()).await;
        let tcp = tcp.map_err(|e| Lost::before(Class::InfraDown, format!("connect to {origin} failed: {e}")))?;
        keep_alive(&tcp);
        Ok(tcp)
    };
    if !origin.https {
        let tcp = timeout(deadlines.connect, tcp).await.map_err(|_| late())??;
        return over(tcp, origin, None, deadlines, ask).await;
    }
    let secured = async {
        let unusable = |e: String| Lost::before(Class::Config, e);
        let name = tls::server_name(&origin.host).map_err(unusable)?;
        let connector = tls.connector().await.map_err(unusable)?;
        let secured = connector.connect(name, tcp.await?).await;
        secured.map_err(|e| match tls.refused(&e) {
            Some(why) => Lost::before(Class::Auth, format!("{origin} {why}")),
            None => Lost::before(tls_class(&e), format!("TLS with {origin} failed: {e}")),
        })
    };
    let secured = timeout(deadlines.connect, secured).await.map_err(|_| late())??;
    over(secured, origin, Some(tls), deadlines, ask).await
}

/// An answer that says nothing for hours is told from a machine that is gone. A system that refuses it goes without.
fn keep_alive(tcp: &TcpStream) {
    let often = socket2::TcpKeepalive::new().with_time(Duration::from_secs(30)).with_interval(Duration::from_secs(10));
    let _ = socket2::SockRef::from(tcp).set_tcp_keepalive(&often);
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
    tls: Option<&Tls>,
    deadlines: Deadlines,
    ask: Ask,
) -> Result<Answer, Lost> {
    let patience = deadlines.head(ask.body.len());
    let request = request(origin, ask).map_err(|e| Lost::before(Class::Config, e))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|e| Lost::before(Class::InfraDown, format!("{origin}: {e}")))?;
    let mut driver = Driver(tokio::spawn(connection));
    let head = timeout(patience, sender.send_request(request)).await.map_err(|_| silent(origin, patience))?;
    let head: Response<Incoming> = match head {
        Ok(head) => head,
        Err(e) => return Err(ended(&e, &mut driver, origin, tls).await),
    };
    let (parts, body) = head.into_parts();
    Ok(Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        origin: origin.clone(),
        silence: deadlines.silence,
        body,
        _driver: driver,
    })
}

/// What it means that a request ended without an answer.
async fn ended(error: &hyper::Error, driver: &mut Driver, origin: &Origin, tls: Option<&Tls>) -> Lost {
    let refused = |e: &hyper::Error| tls.and_then(|tls| tls.refused(e));
    // A connection that ended before it took the request has not sent it, and keeps to itself why it ended.
    let unsent = error.is_canceled();
    let alone = match unsent {
        true => timeout(GOODBYE, &mut driver.0).await.ok().and_then(Result::ok).and_then(Result::err),
        false => None,
    };
    // In TLS 1.3 the handshake ends here before the server has looked at who we are. It looks before it reads on.
    if let Some(why) = refused(error).or_else(|| refused(alone.as_ref()?)) {
        return Lost::before(Class::Auth, format!("{origin} {why}"));
    }
    let why = format!("{origin} ended the request: {}", whole(alone.as_ref().unwrap_or(error)));
    if unsent { Lost::before(Class::InfraDown, why) } else { Lost::after(Class::InfraDown, why) }
}

/// Ends with the request, however that ends.
#[derive(Debug)]
struct Driver(tokio::task::JoinHandle<hyper::Result<()>>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn request(origin: &Origin, ask: Ask) -> Result<Request<Full<Bytes>>, String> {
    let request = Request::builder().method(ask.method).uri(ask.target).body(Full::new(ask.body));
    let mut request = request.map_err(|e| e.to_string())?;
    let headers = request.headers_mut();
    *headers = ask.headers;
    if !headers.contains_key(header::HOST) {
        let host = HeaderValue::from_str(&origin.authority()).map_err(|e| e.to_string())?;
        headers.insert(header::HOST, host);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

fn silent(origin: &Origin, silence: Duration) -> Lost {
    Lost::after(Class::Timeout, format!("{origin} sent nothing for {}s", seconds(silence)))
}

/// `60`, `1.5`.
fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds.fract() == 0.0 { format!("{seconds:.0}") } else { format!("{seconds:.1}") }
}

/// An error with its causes: the outermost words leave out what the system said.
fn whole(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = inner.source();
    }
    text
}
