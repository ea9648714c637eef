//! What is said of every answered request: counted always, written where that was asked for.
use super::access_log::Log;
use super::config::AccessLog;
use super::site::Site;
use std::net::SocketAddr;
use std::time::Instant;

/// One answered request. The texts are read only where [`Observer::logs`] says so; elsewhere they may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Done<'a> {
    /// Method.
    pub method: &'a str,
    /// Host as the client wrote it.
    pub host: &'a str,
    /// Path and query as the client wrote them.
    pub path: &'a str,
    /// `HTTP/1.1`, `HTTP/2.0`, ….
    pub protocol: &'static str,
    /// Status of the answer; 0 when the client went before there was one.
    pub status: u16,
    /// Bytes of the request's body.
    pub bytes_in: u64,
    /// Bytes of the response's body.
    pub bytes_out: u64,
    /// When its first byte came.
    pub started: Instant,
    /// Who asked.
    pub peer: SocketAddr,
    /// `Referer`.
    pub referer: &'a str,
    /// `User-Agent`.
    pub agent: &'a str,
}

/// Counts requests and writes the access log. It never waits: a line that the writer has no room for is dropped and counted.
#[derive(Debug, Default)]
pub struct Observer {
    log: Option<Log>,
}

impl Observer {
    /// Without an access log for `None`. The error is a sentence about the file; counting goes on without it.
    pub fn start(access: Option<&AccessLog>) -> (Self, Option<String>) {
        match access.map(Log::start).transpose() {
            Ok(log) => (Self { log }, None),
            Err(why) => (Self::default(), Some(why)),
        }
    }

    /// Whether the texts of [`Done`] are of use.
    pub fn logs(&self) -> bool {
        self.log.is_some()
    }

    /// Counts one answered request, and writes it down. `site` is `None` for answers of our own that belong to no service.
    pub fn request(&self, site: Option<&Site>, done: &Done<'_>) {
        let took = done.started.elapsed();
        if let Some(site) = site {
            site.stats.answered(done.status, done.bytes_in, done.bytes_out, took);
        }
        if let Some(log) = &self.log {
            log.write(site.map_or("", |site| &site.service), done, took);
        }
    }
}
