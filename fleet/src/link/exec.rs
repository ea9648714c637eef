//! One command on another host, within limits.
use super::channel;
use super::config::Timing;
use super::error::{LinkError, Stage, seconds};
use super::session::Seat;
use super::{ExecLimits, ExecOutput};
use crate::fault::Class;
use bytes::Bytes;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of standard error that are kept; more is read and dropped.
const STDERR: usize = 64 * 1024;
const CHUNK: usize = 32 * 1024;
/// For the session's task to take the close.
const CLOSE: Duration = Duration::from_secs(10);

/// What becomes of a command whose output goes past the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// It has no answer.
    Refuse,
    /// What it said until then is its answer.
    Cut,
}

/// Why a command gave no output.
pub(super) enum ExecError {
    /// The session was gone before the command was sent.
    SessionLost,
    /// The final answer.
    Failed(LinkError),
}

/// Runs `command` on a new channel of the seat's session. May be dropped at any time: the channel is then closed.
pub(super) async fn run(
    seat: &Seat,
    command: &str,
    stdin: &[u8],
    limits: (ExecLimits, Past),
    timing: &Timing,
) -> Result<ExecOutput, ExecError> {
    let channel = open_channel(seat, timing).await?;
    let answer = converse(channel, seat, command, stdin, limits);
    let Some(answer) = seat.session.answers(timing, answer).await else {
        return Err(ExecError::Failed(LinkError::new(Stage::Exec, Class::InfraDown, seat.session.mute())));
    };
    answer.map_err(ExecError::Failed)
}

async fn open_channel(seat: &Seat, timing: &Timing) -> Result<Channel<Msg>, ExecError> {
    let session = &seat.session;
    let opening = session.answers(timing, session.handle.channel_open_session());
    match timeout(timing.open, opening).await {
        Ok(Some(Ok(channel))) => Ok(channel),
        Ok(Some(Err(russh::Error::ChannelOpenFailure(reason)))) => {
            let text = session.facts.refusal_text(&reason).await;
            let why = channel::no_command(&reason, text);
            let sentence = format!("SSH destination {} refused a session channel: {why}", session.destination);
            Err(ExecError::Failed(LinkError::new(Stage::Exec, Class::Refused, sentence)))
        }
        // Unanswered counts as lost: nothing was sent, and another session will tell.
        Ok(Some(Err(_)) | None) | Err(_) => Err(ExecError::SessionLost),
    }
}

/// Starts `command` on a new channel of the seat's session; the channel carries its input and output.
pub(super) async fn start(seat: Seat, command: &str, timing: &Timing) -> Result<(Channel<Msg>, Seat), ExecError> {
    let mut channel = open_channel(&seat, timing).await?;
    let lost = |seat: &Seat| ExecError::Failed(LinkError::new(Stage::Exec, Class::InfraDown, seat.session.lost()));
    channel.exec(true, command).await.map_err(|_| lost(&seat))?;
    loop {
        match channel.wait().await {
            Some(ChannelMsg::Success) => return Ok((channel, seat)),
            Some(ChannelMsg::Failure | ChannelMsg::Close) => {
                let sentence = format!("SSH destination {} refused to run a command", seat.session.destination);
                return Err(ExecError::Failed(LinkError::new(Stage::Exec, Class::Refused, sentence)));
            }
            Some(_) => {}
            None => return Err(lost(&seat)),
        }
    }
}

async fn converse(
    channel: Channel<Msg>,
    seat: &Seat,
    command: &str,
    stdin: &[u8],
    (limits, past): (ExecLimits, Past),
) -> Result<ExecOutput, LinkError> {
    let session = &seat.session;
    let (mut reader, writer) = channel.split();
    let mut writer = Closing { writer: Some(Arc::new(writer)) };
    let lost = || LinkError::new(Stage::Exec, Class::InfraDown, session.lost());
    let half = writer.writer.clone().ok_or_else(lost)?;
    half.exec(true, command).await.map_err(|_| lost())?;
    let mut heard = Heard { stdout_limit: limits.stdout, ..Heard::default() };
    // Input is fed beside the reading: either side may stop first.
    let feeding = feed(&half, stdin);
    tokio::pin!(feeding);
    let mut fed = false;
    let end = loop {
        tokio::select! {
            () = &mut feeding, if !fed => fed = true,
            end = listen(&mut reader, &mut heard) => break end,
        }
    };
    if let Ended::Closed | Ended::Lost = end {
        writer.writer = None;
    }
    match end {
        Ended::Closed => Ok(ExecOutput {
            stdout: heard.stdout,
            stderr: heard.stderr,
            status: heard.status,
            path: session.path.clone(),
            cut: false,
        }),
        Ended::TooMuch if past == Past::Cut => Ok(ExecOutput {
            stdout: heard.stdout,
            stderr: heard.stderr,
            status: None,
            path: session.path.clone(),
            cut: true,
        }),
        Ended::Lost => Err(lost()),
        Ended::Refused => {
            let sentence = format!("SSH destination {} refused to run a command", session.destination);
            Err(LinkError::new(Stage::Exec, Class::Refused, sentence))
        }
        Ended::TooMuch => {
            let sentence = format!("the command on {} answered more than {} bytes", session.destination, limits.stdout);
            Err(LinkError::new(Stage::Limit, Class::Refused, sentence))
        }
    }
}

/// Closes the channel of a command that is given up: its far end would go on sending.
struct Closing {
    writer: Option<Arc<ChannelWriteHalf<Msg>>>,
}
impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            tokio::spawn(async move { timeout(CLOSE, writer.close()).await });
        }
    }
}

/// The sentence for a command that ran out of time.
pub(super) fn late(destination: &str, deadline: Duration) -> LinkError {
    let sentence = format!("command on {destination} gave no complete answer within {}", seconds(deadline));
    LinkError::new(Stage::Exec, Class::Timeout, sentence)
}

async fn feed(writer: &ChannelWriteHalf<Msg>, stdin: &[u8]) {
    // An error here means that the channel is gone; what the reader sees of it decides.
    for chunk in stdin.chunks(CHUNK) {
        if writer.data_bytes(Bytes::copy_from_slice(chunk)).await.is_err() {
            return;
        }
    }
    let _ = writer.eof().await;
}

#[derive(Default)]
struct Heard {
    stdout: Vec<u8>,
    stdout_limit: usize,
    stderr: Vec<u8>,
    status: Option<u32>,
}

enum Ended {
    Closed,
    Lost,
    Refused,
    TooMuch,
}

/// Reads until the channel closes; end, status and signal may come in any order before it.
async fn listen(reader: &mut ChannelReadHalf, heard: &mut Heard) -> Ended {
    loop {
        match reader.wait().await {
            Some(ChannelMsg::Data { data }) => {
                let room = heard.stdout_limit.saturating_sub(heard.stdout.len());
                heard.stdout.extend_from_slice(data.get(..room).unwrap_or(&data));
                if data.len() > room {
                    return Ended::TooMuch;
                }
            }
            Some(ChannelMsg::ExtendedData { data, ext: 1 }) => {
                let room = STDERR.saturating_sub(heard.stderr.len());
                heard.stderr.extend_from_slice(data.get(..room).unwrap_or(&data));
            }
            Some(ChannelMsg::ExitStatus { exit_status }) => heard.status = Some(exit_status),
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                let note = format!("ended by signal {signal_name:?}\n");
                heard.stderr.extend_from_slice(note.as_bytes());
            }
            Some(ChannelMsg::Failure) => return Ended::Refused,
            Some(ChannelMsg::Close) => return Ended::Closed,
            Some(_) => {}
            None => return Ended::Lost,
        }
    }
}
