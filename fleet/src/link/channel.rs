//! Opening a direct-tcpip channel, and its refusal in words.
use super::config::Timing;
use super::error::{LinkError, Stage, seconds};
use super::session::Seat;
use super::stream::ChannelStream;
use crate::fault::Class;
use russh::ChannelOpenFailure;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Why an open did not give a stream.
pub(super) enum OpenError {
    /// The session is gone; nothing was sent on the channel.
    SessionLost,
    /// The final answer.
    Failed(LinkError),
}

/// Opens a channel to `endpoint`. An open that is given up goes on in the background until it is answered, and is then
/// closed: russh would keep the channel for good.
pub(super) async fn open(
    seat: Seat,
    endpoint: SocketAddr,
    deadline: Duration,
    timing: &Timing,
) -> Result<ChannelStream, OpenError> {
    let session = seat.session.clone();
    let opening = tokio::spawn(async move {
        let (host, port) = (endpoint.ip().to_string(), u32::from(endpoint.port()));
        let channel = seat.session.handle.channel_open_direct_tcpip(host, port, "127.0.0.1", 0).await;
        channel.map(|channel| ChannelStream::new(channel, seat))
    });
    let refused = |stage, why: String| {
        let sentence = format!("SSH destination {} refused channel to {endpoint}: {why}", session.destination);
        OpenError::Failed(LinkError::new(stage, Class::Refused, sentence))
    };
    match timeout(deadline, session.answers(timing, opening)).await {
        Ok(Some(Ok(Ok(stream)))) => Ok(stream),
        Ok(Some(Ok(Err(russh::Error::ChannelOpenFailure(reason))))) => {
            let text = session.facts.refusal_text(&reason).await;
            let reached = matches!(reason, ChannelOpenFailure::ConnectFailed);
            Err(refused(if reached { Stage::Service } else { Stage::Open }, refusal(&reason, text)))
        }
        // Ended, or mute: nothing was sent on the channel, and another session will tell.
        Ok(Some(Ok(Err(_)) | Err(_)) | None) => Err(OpenError::SessionLost),
        // The session lives: it is kept.
        Err(_) => {
            let sentence = format!(
                "SSH destination {} did not answer the opening of a channel to {endpoint} within {}",
                session.destination,
                seconds(deadline)
            );
            Err(OpenError::Failed(LinkError::new(Stage::Open, Class::Timeout, sentence)))
        }
    }
}

/// The refusal of a session channel, which is what a command needs.
pub(super) fn no_command(reason: &ChannelOpenFailure, text: Option<String>) -> String {
    let text = text.unwrap_or_else(|| "open failed".to_owned());
    match reason {
        ChannelOpenFailure::ConnectFailed => {
            format!("{text} (sshd says so when its MaxSessions is reached: raise it in its sshd_config)")
        }
        ChannelOpenFailure::AdministrativelyProhibited => {
            format!("{text} (its sshd allows no commands: MaxSessions 0)")
        }
        _ => text,
    }
}

/// The refusal in words a person can act on. sshd's own are short: `open failed` stands for a policy and for a missing
/// listener alike, so the code decides the hint.
fn refusal(reason: &ChannelOpenFailure, text: Option<String>) -> String {
    let (name, hint) = match reason {
        ChannelOpenFailure::AdministrativelyProhibited => (
            "administratively prohibited",
            "its sshd forbids it: AllowTcpForwarding, PermitOpen or permitopen= lacks the address",
        ),
        ChannelOpenFailure::ConnectFailed => ("connect failed", "nothing there takes connections"),
        ChannelOpenFailure::UnknownChannelType => ("unknown channel type", "it cannot forward"),
        ChannelOpenFailure::ResourceShortage => ("resource shortage", "it has no room for more channels"),
        ChannelOpenFailure::Other { .. } => ("refused", "it gave a reason that SSH does not name"),
    };
    match text {
        Some(text) if text.eq_ignore_ascii_case("open failed") => format!("{name}: {text} ({hint})"),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name} ({hint})"),
    }
}
