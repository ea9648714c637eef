//! Moving the bytes of one connection both ways until both ends are done (proxy rules 5 and 6).
//!
//! `machine` decides what one direction does next and is pure; `direction` does it; `driver` runs two of them until the
//! connection ends; `side` is what they need of a socket or of a stream to another host. Small messages go through one
//! buffer that the connections of a thread share, bulk through a pipe that exists while the direction is busy.
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
use driver::{Broken, Ending, Relay};
use pipe::Pipes;
use remote::RemoteSide;
use stado_fleet::fault::Blame;
use tcp::TcpSide;
use tokio::net::TcpStream;

/// Relays until both directions have ended, one side is reset, or a half-closed pair was silent for `linger`. `early`: bytes
/// of the client that were taken already.
pub(super) async fn relay(client: TcpStream, upstream: Upstream, early: Vec<u8>, entry: &mut Entry, context: &Context) {
    let (linger, pipes) = (context.limits.linger, Pipes::new(&context.descriptors));
    let ending = match upstream {
        Upstream::Local(service) => {
            let (client, service) = (TcpSide::new(&client), TcpSide::new(&service));
            Relay::new(client, service, early, linger, &pipes).run(entry).await
        }
        Upstream::Remote(service) => {
            let (client, service) = (TcpSide::new(&client), RemoteSide::new(service));
            Relay::new(client, service, early, linger, &pipes).run(entry).await
        }
    };
    let (outcome, blame) = match ending {
        Ending::Done => (Outcome::Done, None),
        Ending::Broken(Broken::Client) => (Outcome::ClientReset, Some(Blame::Caller)),
        Ending::Broken(Broken::Service(error)) => {
            (Outcome::ServiceReset(error.to_string().into()), Some(Blame::Service))
        }
        Ending::Lingered => (Outcome::Lingered, None),
    };
    entry.end(outcome, blame);
}
