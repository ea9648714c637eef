//! `GET /metrics` on a loopback port, for collectors that cannot read the control socket. Off unless configured.
use crate::api::control::METRICS_TYPE;
use crate::api::resolution::{MetricsText, is_loopback_authority};
use crate::conn::{self, BindError, Bound, Families, Lendable, Lent, OwnListeners};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// From accept to the end of a head (proxy rule 19).
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// Pause before accepting again when the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// A running metrics listener; dropping it closes it.
#[derive(Debug)]
pub struct MetricsListener {
    own: OwnListeners,
    bind: SocketAddr,
    lendable: Lendable,
    _stop: DropGuard,
}

impl MetricsListener {
    /// Binds `bind`, which must be a loopback address (the configuration checks that), on both loopback families where
    /// they are free, and answers from `text`. Must run inside a runtime.
    pub fn start(bind: SocketAddr, text: MetricsText, own: OwnListeners) -> Result<Self, BindError> {
        Ok(Self::start_on(conn::bind(bind, Families::AtLeastOne)?, text, own))
    }

    /// The same on listeners that are bound already.
    pub fn start_on(bound: Bound, text: MetricsText, own: OwnListeners) -> Self {
        let bind = bound.addr;
        own.enter(bind, "the metrics page".into());
        let stop = CancellationToken::new();
        let listeners: Vec<_> = bound.into_listeners().into_iter().map(Arc::new).collect();
        let lendable = Lendable::of(&listeners);
        for listener in listeners {
            tokio::spawn(accept(listener, text.clone(), stop.clone()));
        }
        Self { own, bind, lendable, _stop: stop.drop_guard() }
    }

    /// Where it listens.
    pub fn bind(&self) -> SocketAddr {
        self.bind
    }

    /// The listeners, to hand them over to another process.
    pub fn lend(&self) -> Vec<Lent> {
        self.lendable.lend()
    }
}

impl Drop for MetricsListener {
    fn drop(&mut self) {
        self.own.leave(self.bind);
    }
}

async fn accept(listener: Arc<TcpListener>, text: MetricsText, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, text.clone(), stop.clone()))),
            Err(error) => {
                tracing::warn!(target: "stado::mesh", error = %error, "metrics_accept_failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, text: MetricsText, stop: CancellationToken) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let answer = answer(request.method(), request.uri().path(), request.headers(), &text);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = serving => {}
        () = stop.cancelled() => {}
    }
}

/// A page in a browser is told by its `Origin`, one behind a rebound name by its `Host`; both are refused (design, rule 7).
fn answer(method: &Method, path: &str, headers: &HeaderMap, text: &MetricsText) -> Response<Full<Bytes>> {
    let strange = |host: &HeaderValue| !host.to_str().is_ok_and(is_loopback_authority);
    if headers.contains_key(ORIGIN) || headers.get_all(HOST).iter().any(strange) {
        return page(StatusCode::FORBIDDEN, PLAIN, "only for programs of this host\n".into());
    }
    match (path, method) {
        ("/metrics", &Method::GET | &Method::HEAD) => page(StatusCode::OK, METRICS_TYPE, text()),
        ("/metrics", _) => {
            let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "Method Not Allowed\n".into());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            refused
        }
        _ => page(StatusCode::NOT_FOUND, PLAIN, "404 page not found; the metrics are at /metrics\n".into()),
    }
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn ask(bind: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(bind).await.unwrap();
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn programs_of_this_host_read_it_and_web_pages_do_not() {
        let bind = (21_000..31_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let text: MetricsText = Arc::new(|| "stado_x 1\n# EOF\n".into());
        let own = OwnListeners::default();
        let mut started = bind.filter_map(|bind| MetricsListener::start(bind, text.clone(), own.clone()).ok());
        let listener = started.next().unwrap();
        let bind = listener.bind;
        assert_eq!(own.purpose(bind).as_deref(), Some("the metrics page"));
        let good = ask(bind, &format!("GET /metrics HTTP/1.1\r\nHost: localhost:{}", bind.port())).await;
        assert!(good.starts_with("HTTP/1.1 200") && good.ends_with("stado_x 1\n# EOF\n"), "{good}");
        for head in [
            "GET /metrics HTTP/1.1\r\nHost: evil.example",
            "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1",
        ] {
            assert!(ask(bind, head).await.starts_with("HTTP/1.1 403"), "{head}");
        }
        assert!(ask(bind, "POST /metrics HTTP/1.1\r\nHost: 127.0.0.1").await.starts_with("HTTP/1.1 405"));
        assert!(ask(bind, "GET / HTTP/1.1\r\nHost: 127.0.0.1").await.starts_with("HTTP/1.1 404"));
        drop(listener);
        assert_eq!(own.purpose(bind), None);
    }
}
