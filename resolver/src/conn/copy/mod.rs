//! Moving the bytes of one connection both ways until both ends are done (proxy rules 5 and 6).
//!
//! `machine` decides what one direction does next and is pure; `direction` does it; `driver` runs two of them until the
//! connection ends; `side` is what they need of a socket or of a stream to another host. Small messages go through one
//! buffer that the connections of a thread share, bulk through a pipe that exists while the direction is busy.
mod bulk;
mod direction;
mod driver;
mod machine;
#[cfg_attr(not(target_os = "linux"), path = "no_pipe.rs")]
mod pipe;
mod remote;
mod scratch;
mod side;
mod tcp;

use super::Context;
use super::dial::Upstream;
use super::ledger::{Entry, Outcome};
pub(crate) use bulk::Bulk;
use driver::{Broken, Ending, Relay};
use pipe::Pipes;
use remote::RemoteSide;
use side::Side;
use stado_fleet::fault::Blame;
use stado_fleet::link::RemoteStream;
use std::io::ErrorKind;
use std::pin::Pin;
use tcp::TcpSide;
use tokio::net::TcpStream;

/// One end of a relay.
pub(crate) enum End<'a> {
    /// A socket of this host.
    Socket(&'a TcpStream),
    /// A stream that is no socket: of the link, or under TLS.
    Stream(Pin<Box<dyn RemoteStream>>),
}

/// Relays until both directions have ended, one side is reset, or a half-closed pair was silent for `linger`. `early`: bytes
/// of the client that were taken already.
pub(super) async fn relay(
    client: &TcpStream,
    upstream: Upstream,
    early: Vec<u8>,
    entry: &mut Entry,
    context: &Context,
) {
    let client = End::Socket(client);
    match upstream {
        Upstream::Local(service) => relay_ends(client, End::Socket(&service), early, entry, context).await,
        Upstream::Remote(service) => relay_ends(client, End::Stream(service), early, entry, context).await,
    };
}

/// Runs a relay in memory of its own.
fn beside<'a, C, S>(mut relay: Relay<C, S>, entry: &'a mut Entry) -> Pin<Box<dyn Future<Output = Ending> + Send + 'a>>
where
    C: Side + Send + 'a,
    S: Side + Send + 'a,
{
    Box::pin(async move { relay.run(entry).await })
}

/// [`relay`] between two ends of any kind. Whether it ended as it should; else an end that is no socket of ours was dropped
/// without its end, and whoever holds its socket has to reset that.
pub(crate) async fn relay_ends(
    client: End<'_>,
    service: End<'_>,
    early: Vec<u8>,
    entry: &mut Entry,
    context: &Context,
) -> bool {
    let (linger, pipes) = (context.limits.linger, Pipes::new(&context.descriptors));
    // A future is as large as its largest part: between two sockets, the common pair, the relay is part of it, else beside it.
    let ending = match (client, service) {
        (End::Socket(client), End::Socket(service)) => {
            Relay::new(TcpSide::new(client), TcpSide::new(service), early, linger, &pipes).run(entry).await
        }
        (End::Socket(client), End::Stream(service)) => {
            beside(Relay::new(TcpSide::new(client), RemoteSide::new(service), early, linger, &pipes), entry).await
        }
        (End::Stream(client), End::Socket(service)) => {
            beside(Relay::new(RemoteSide::new(client), TcpSide::new(service), early, linger, &pipes), entry).await
        }
        (End::Stream(client), End::Stream(service)) => {
            beside(Relay::new(RemoteSide::new(client), RemoteSide::new(service), early, linger, &pipes), entry).await
        }
    };
    let done = matches!(ending, Ending::Done);
    let (outcome, blame) = match ending {
        Ending::Done => (Outcome::Done, None),
        Ending::Broken(Broken::Client) => (Outcome::ClientReset, Some(Blame::Caller)),
        // What the link says of a session that took its streams with it.
        Ending::Broken(Broken::Service(error)) if error.kind() == ErrorKind::ConnectionAborted => {
            entry.broke_on_the_way(&error.to_string());
            return false;
        }
        Ending::Broken(Broken::Service(error)) => {
            // A stream of the link says so when its session went, which is not the service's doing.
            let blame =
                if error.kind() == std::io::ErrorKind::ConnectionAborted { Blame::Remote } else { Blame::Service };
            (Outcome::ServiceReset(error.to_string().into()), Some(blame))
        }
        Ending::Lingered => (Outcome::Lingered, None),
    };
    entry.end(outcome, blame);
    done
}
