//! ProxyJump: the way to a host through sessions to others, which all hosts behind them share.
use super::error::{LinkError, Stage, seconds};
use super::pool::{Key, Pool, Purpose};
use super::stream::ChannelStream;
use crate::fault::Class;
use crate::name::{ConnectionPath, SshDestination, TargetName};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// A channel to `host:port` as the last of `jumps` sees it, and how long its opening took.
pub(super) async fn through(
    jumps: &[SshDestination],
    host: &str,
    port: u16,
    pool: &Arc<Pool>,
) -> Result<(ChannelStream, Duration), LinkError> {
    let Some((last, before)) = jumps.split_last() else {
        return Err(LinkError::new(Stage::Connect, Class::Config, "ProxyJump names no host"));
    };
    let failed =
        |class, why: String| LinkError::new(Stage::Connect, class, format!("through the jump host {last}: {why}"));
    let path = ConnectionPath { name: "jump".into(), destination: last.clone() };
    let key = Key { host: name(jumps)?, paths: [path].into(), purpose: Purpose::Jump(before.into()) };
    let seat = pool.seat(&key).await.map_err(|error| failed(error.class, error.causes().to_owned()))?;
    let (session, timing) = (seat.session.clone(), &pool.config().timing);
    let (began, to) = (Instant::now(), host.to_owned());
    // To its end, also when it is given up: russh would keep the channel for good.
    let opening = tokio::spawn(async move {
        let channel = seat.session.handle.channel_open_direct_tcpip(to, u32::from(port), "127.0.0.1", 0).await;
        // What may arrive is bounded by the windows of the session inside, whose task always reads.
        channel.map(|channel| ChannelStream::drained(channel, seat))
    });
    match timeout(timing.open, session.answers(timing, opening)).await {
        Ok(Some(Ok(Ok(channel)))) => Ok((channel, began.elapsed())),
        Ok(Some(Ok(Err(russh::Error::ChannelOpenFailure(reason))))) => {
            let text = session.facts.refusal_text(&reason).await.unwrap_or_else(|| "open failed".to_owned());
            Err(failed(Class::InfraDown, format!("it opens no channel to {host}:{port}: {text}")))
        }
        Ok(Some(Ok(Err(_)) | Err(_)) | None) => {
            pool.forget(&key, &session);
            Err(failed(Class::InfraDown, session.lost()))
        }
        Err(_) => {
            let limit = seconds(timing.open);
            Err(failed(
                Class::Timeout,
                format!("it did not answer the opening of a channel to {host}:{port} within {limit}"),
            ))
        }
    }
}

/// What the pool calls the way so far. Each way has its own turn: one that waits for the way before it holds up no other.
fn name(jumps: &[SshDestination]) -> Result<TargetName, LinkError> {
    let way = jumps.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let digest = hex::encode(Sha256::digest(way.as_bytes()));
    let short = digest.get(..16).unwrap_or(&digest);
    let named = format!("jump-{short}").parse::<TargetName>();
    named.map_err(|error| LinkError::new(Stage::Connect, Class::Config, format!("the jump host {way} {error}")))
}
