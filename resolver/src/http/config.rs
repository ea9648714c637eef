//! What the router is started with. Values only: layers and their sources belong to the command line.
use super::tls::TlsSettings;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The `http` section of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where plain HTTP is served; `None` is nowhere.
    pub http: Option<SocketAddr>,
    /// Where HTTPS is served once there is a certificate; `None` is nowhere.
    pub https: Option<SocketAddr>,
    /// Bounds and deadlines.
    pub limits: Limits,
    /// The access log; `None` is off.
    pub access: Option<AccessLog>,
    /// Certificates. Without one that loads, HTTPS is not served.
    pub tls: TlsSettings,
}

impl HttpConfig {
    /// With these certificates, under this configuration's own deadline.
    pub fn with(self, tls: &TlsSettings) -> Self {
        Self { tls: TlsSettings { hello: self.limits.hello_deadline, ..tls.clone() }, ..self }
    }
}

/// Bounds of the router. [`Default`] carries the documented values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's or a response's head; more is 431, or 502 from a backend.
    pub head_bytes: usize,
    /// Header fields in a head.
    pub header_count: usize,
    /// Connections of clients at a time, over all services.
    pub connections: usize,
    /// Requests of one service at a time; the excess is answered 503.
    pub service_requests: usize,
    /// From accept, or from a request's first byte on a kept connection, to the end of its head (proxy rule 19).
    pub head_deadline: Duration,
    /// From accept to the end of the TLS handshake (proxy rule 19).
    pub hello_deadline: Duration,
    /// How long a client's connection may stay without a request.
    pub idle: Duration,
    /// How long a client may take nothing of an answer that waits for it; its connection, or its stream in HTTP/2, is reset then.
    pub unread: Duration,
    /// How long a connection to a backend is kept for the next request.
    pub backend_idle: Duration,
    /// Streams of one HTTP/2 connection at a time.
    pub h2_streams: u32,
    /// Streams that a client may reset before they are answered, until its connection is ended.
    pub h2_resets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 << 10,
            header_count: 128,
            connections: 16_384,
            service_requests: 4096,
            head_deadline: Duration::from_secs(30),
            hello_deadline: Duration::from_secs(30),
            idle: Duration::from_secs(600),
            unread: Duration::from_secs(600),
            backend_idle: Duration::from_secs(60),
            h2_streams: 256,
            h2_resets: 64,
        }
    }
}

/// Where answered requests are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// The file; with rotation, its name with a date behind it.
    pub path: PathBuf,
    /// How a line looks.
    pub format: AccessFormat,
    /// When a new file is begun.
    pub rotate: Rotate,
    /// Old files that are kept.
    pub keep: usize,
}

/// How a line of the access log looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessFormat {
    /// One JSON object.
    #[default]
    Json,
    /// The combined format of other servers, which their tools read.
    Combined,
}

/// When a new file of the access log is begun.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rotate {
    /// Never.
    Never,
    /// Every hour.
    Hourly,
    /// Every day.
    #[default]
    Daily,
}
