//! One connection per request, made by us: over the Unix socket, TCP, or `docker system dial-stdio` on our own SSH link.
//! Nothing is pooled, so that a replaced socket or a restarted engine is met by the next request.
use super::endpoint::Endpoint;
use bollard::errors::Error;
use bollard::{BollardRequest, Docker};
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use stado_fleet::link::{Link, RemoteStream, single_path};
use stado_fleet::name::{SshDestination, TargetName};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// What the engine's own command runs on the other host.
const DIAL_STDIO: &str = "docker system dial-stdio";

/// Waits between attempts on a socket that is there and busy; about two seconds in all.
const BUSY: [Duration; 8] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(500),
    Duration::from_millis(1000),
];

/// A way to one engine.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) endpoint: Endpoint,
    pub(super) link: Option<Link>,
    /// Deadline of connecting and of the head of an answer.
    pub(super) deadline: Duration,
}

impl Transport {
    /// A client that speaks over it.
    pub(super) fn client(self) -> Result<Docker, Error> {
        let seconds = self.deadline.as_secs().max(1);
        let this = Arc::new(self);
        let send = move |request: BollardRequest| {
            let this = this.clone();
            async move { this.send(request).await }
        };
        Docker::connect_with_custom_transport(send, Some("http://engine"), seconds, bollard::API_DEFAULT_VERSION)
    }

    async fn send(&self, mut request: BollardRequest) -> Result<Response<Incoming>, Error> {
        let stream = self.open().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with its one answer, or when that is dropped.
        tokio::spawn(connection);
        let path = request.uri().path_and_query().map(|path| path.as_str().to_owned()).unwrap_or_else(|| "/".into());
        *request.uri_mut() = path.parse().map_err(|err| Error::InvalidURIError { err })?;
        request.headers_mut().insert(HOST, HeaderValue::from_static("docker"));
        Ok(sender.send_request(request).await?)
    }

    async fn open(&self) -> io::Result<Pin<Box<dyn RemoteStream>>> {
        match &self.endpoint {
            Endpoint::Unix(path) => Ok(Box::pin(patiently(|| UnixStream::connect(path)).await?)),
            Endpoint::Tcp { host, port } => Ok(Box::pin(TcpStream::connect((host.as_str(), *port)).await?)),
            Endpoint::Ssh(destination) => self.over_ssh(destination).await,
        }
    }

    async fn over_ssh(&self, destination: &SshDestination) -> io::Result<Pin<Box<dyn RemoteStream>>> {
        let link = self.link.as_ref().ok_or_else(|| io::Error::other("this daemon has no SSH link"))?;
        let host: TargetName = target(destination)?;
        let paths = single_path(destination.clone());
        let stream = link.exec_stream(&host, &paths, DIAL_STDIO, self.deadline).await;
        stream.map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Connects; an engine whose queue is full for the moment, or a call that a signal interrupted, is no engine that is gone.
async fn patiently<T, F: Future<Output = io::Result<T>>>(mut connect: impl FnMut() -> F) -> io::Result<T> {
    for wait in BUSY {
        match connect().await {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                tokio::time::sleep(wait).await;
            }
            outcome => return outcome,
        }
    }
    connect().await
}

/// The name under which the link pools sessions to an engine's host.
pub(super) fn target(destination: &SshDestination) -> io::Result<TargetName> {
    let mut name = String::from("docker-");
    name.extend(destination.host.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }));
    name.trim_end_matches('-').parse().map_err(|error| io::Error::other(format!("{destination}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Fails with each of `failures` in turn, then succeeds. Returns the outcome and how often it was asked.
    async fn attempts(failures: &[io::ErrorKind]) -> (io::Result<()>, usize) {
        let asked = Cell::new(0);
        let outcome = patiently(|| {
            let failure = failures.get(asked.replace(asked.get() + 1)).copied();
            std::future::ready(failure.map_or(Ok(()), |kind| Err(kind.into())))
        });
        let outcome = outcome.await;
        (outcome, asked.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_socket_is_asked_again_and_a_missing_one_is_not() {
        use io::ErrorKind::{Interrupted, NotFound, WouldBlock};
        let (outcome, asked) = attempts(&[WouldBlock, Interrupted, WouldBlock]).await;
        assert!(outcome.is_ok() && asked == 4);
        let (outcome, asked) = attempts(&[NotFound; 3]).await;
        assert_eq!((outcome.unwrap_err().kind(), asked), (NotFound, 1));
        let (outcome, asked) = attempts(&[WouldBlock; 100]).await;
        assert_eq!((outcome.unwrap_err().kind(), asked), (WouldBlock, BUSY.len() + 1));
    }
}
