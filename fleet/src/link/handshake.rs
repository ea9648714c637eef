//! The opening of a session: TCP, identification, key exchange, host key, authentication, each with its own deadline and
//! sentence.
use super::auth;
use super::config::Timing;
use super::distance::channel_window;
use super::error::{LinkError, Stage, seconds};
use super::handler::{Facts, Watcher};
use super::known_hosts::{KnownHosts, Wanted};
use super::liveness::{Heard, Watched};
use super::pool::Pool;
use super::session::Session;
use super::ssh_config;
use super::transport::{self, Cord, Transport};
use crate::fault::Class;
use crate::name::{ConnectionPath, SshDestination};
use russh::client::{self, Config, Handle};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Opens a session over one path. `via` are the jump hosts to take in place of those that the account's configuration names.
pub(super) async fn establish(
    path: &ConnectionPath,
    via: Option<&[SshDestination]>,
    pool: &Arc<Pool>,
) -> Result<Session, LinkError> {
    let destination = &path.destination;
    let route = ssh_config::resolve(destination, pool.config()).await?;
    let jumps = via.unwrap_or(&route.jumps);
    let (transport, cord, took) = transport::open(&route, jumps, destination, pool).await?;
    let window = channel_window(pool.distances.of(destination).unwrap_or(took));
    let known = KnownHosts::read(&route.known_hosts).await;
    let (name, port) = route.listed();
    let wanted = known.of(name, port).wanted();
    let facts = Arc::new(Facts::default());
    let accept_new = route.known_hosts.first().filter(|_| route.accept_new).cloned();
    let watcher = Watcher { facts: facts.clone(), known, host: name.to_owned(), port, accept_new };
    let guard = Cut { cord: Some(&cord) };
    let heard = Heard::new();
    let stream = Watched::new(transport, heard.clone());
    let timing = &pool.config().timing;
    let mut handle =
        handshake(stream, &heard, watcher, client_config(wanted, timing, window), destination, timing).await?;
    auth::authenticate(&mut handle, &facts, &route, destination, timing).await?;
    guard.keep();
    Ok(Session::new(handle, facts, heard, cord, path, window))
}

/// Cuts the transport unless the session came to stand: russh's task would otherwise stay in a handshake that nobody waits
/// for.
struct Cut<'a> {
    cord: Option<&'a Cord>,
}
impl Cut<'_> {
    fn keep(mut self) {
        self.cord = None;
    }
}
impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if let Some(cord) = self.cord {
            cord.cut();
        }
    }
}

async fn handshake(
    stream: Watched<Transport>,
    heard: &Heard,
    watcher: Watcher,
    config: Config,
    destination: &SshDestination,
    timing: &Timing,
) -> Result<Handle<Watcher>, LinkError> {
    let facts = watcher.facts.clone();
    // Fewer system calls: a session reads many small packets.
    let stream = tokio::io::BufReader::with_capacity(256 * 1024, stream);
    let connecting = client::connect_stream(Arc::new(config), stream, watcher);
    tokio::pin!(connecting);
    let early = tokio::select! {
        biased;
        done = &mut connecting => Some(done),
        () = heard.named() => None,
        () = tokio::time::sleep(timing.banner) => return Err(unnamed(destination, heard, Some(timing.banner))),
    };
    let done = match early {
        Some(done) => done,
        None => timeout(timing.handshake, connecting).await.map_err(|_| {
            let why = format!("no answer within {}", seconds(timing.handshake));
            exchange_failed(destination, Class::Timeout, &why)
        })?,
    };
    done.map_err(|error| match facts.rejection() {
        Some(rejection) => rejection,
        None if !heard.has_name() => unnamed(destination, heard, None),
        None => {
            let class = if ended(&error) { Class::RateLimit } else { Class::InfraDown };
            exchange_failed(destination, class, &explain(&error))
        }
    })
}

fn exchange_failed(destination: &SshDestination, class: Class, why: &str) -> LinkError {
    LinkError::new(Stage::Handshake, class, format!("the SSH handshake with {destination} failed: {why}"))
}

/// The host did not say its name: it is mute, busy, or speaks something else.
fn unnamed(destination: &SshDestination, heard: &Heard, waited: Option<Duration>) -> LinkError {
    let said = heard.instead();
    let busy = said.as_ref().is_none_or(|said| said.contains("MaxStartups") || said.contains("Not allowed"));
    let (class, why) = match (waited, said) {
        (Some(waited), None) => (
            Class::Timeout,
            format!(
                "it took the connection and sent no SSH identification within {}: its sshd is stopped or overloaded, or \
                 something else listens there",
                seconds(waited)
            ),
        ),
        (None, None) => (
            Class::RateLimit,
            "the host closed the connection without an SSH identification (a busy sshd does so beyond its MaxStartups)"
                .to_owned(),
        ),
        (_, Some(said)) if busy => (
            Class::RateLimit,
            format!("the host turned the connection away: it said {said}; see its sshd's MaxStartups"),
        ),
        (_, Some(said)) => (Class::Config, format!("what answers there is no SSH server: it said {said}")),
    };
    LinkError::new(Stage::Banner, class, format!("the SSH handshake with {destination} failed: {why}"))
}

/// How sshd turns away what is beyond its MaxStartups, when it has said its name already.
fn ended(error: &russh::Error) -> bool {
    use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
    match error {
        russh::Error::Disconnect | russh::Error::HUP => true,
        russh::Error::IO(error) => matches!(error.kind(), ConnectionReset | UnexpectedEof),
        _ => false,
    }
}

fn explain(error: &russh::Error) -> String {
    match error {
        error if ended(error) => "the host closed the connection (a busy sshd does so beyond its MaxStartups)".into(),
        russh::Error::NoCommonAlgo { kind, ours, theirs } => format!(
            "no common {kind:?} algorithm: this host accepts {}, the other offers {}",
            ours.join(","),
            theirs.join(",")
        ),
        other => other.to_string(),
    }
}

fn client_config(wanted: Wanted, timing: &Timing, window: u32) -> Config {
    use russh::cipher::{AES_128_CTR, AES_128_GCM, AES_192_CTR, AES_256_CTR, AES_256_GCM, CHACHA20_POLY1305};
    let preferred = russh::Preferred {
        key: Cow::Owned(wanted.keys),
        host_key_certificates: Cow::Owned(wanted.certificates),
        cipher: Cow::Borrowed(&[AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, AES_256_CTR, AES_192_CTR, AES_128_CTR]),
        compression: Cow::Borrowed(&[russh::compression::NONE]),
        ..russh::Preferred::DEFAULT
    };
    Config {
        client_id: russh::SshId::Standard(Cow::Borrowed(concat!("SSH-2.0-Stado_", env!("CARGO_PKG_VERSION")))),
        // A rekey that we start under busy downloads ends the session (`ssh-relay.md` §3.5): the other side starts them.
        limits: russh::Limits {
            rekey_write_limit: usize::MAX,
            rekey_read_limit: usize::MAX,
            rekey_time_limit: Duration::MAX,
        },
        preferred,
        window_size: window,
        inactivity_timeout: Some(timing.silence()),
        keepalive_interval: Some(timing.keepalive),
        keepalive_max: timing.keepalive_max,
        nodelay: true,
        ..Config::default()
    }
}
