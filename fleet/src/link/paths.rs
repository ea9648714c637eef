//! Which of a host's paths carries a session: tried in order, each with a head start over the next, so that a mute one
//! costs the head start and not the budget of whoever waits.
use super::error::LinkError;
use super::handshake::establish;
use super::pool::Pool;
use super::session::Session;
use crate::name::{ConnectionPath, SshDestination};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;

/// Opens a session over the first path of `order` (positions in `paths`) that comes to stand. The next path is tried when
/// one fails, or beside it when its head start is over. `via` are jump hosts in place of the configured ones.
pub(super) async fn race(
    paths: &[ConnectionPath],
    order: &[usize],
    via: Option<&[SshDestination]>,
    pool: &Arc<Pool>,
) -> Result<(usize, Session), LinkError> {
    let attempt = |position: usize| async move {
        let path = paths.get(position)?;
        Some((position, establish(path, via, pool).await))
    };
    let mut waiting = order.iter().copied();
    let mut running = FuturesUnordered::new();
    let mut failures = Vec::new();
    running.extend(waiting.next().map(attempt));
    loop {
        tokio::select! {
            done = running.next() => match done {
                Some(Some((position, Ok(session)))) => return Ok((position, session)),
                Some(Some((position, Err(error)))) => {
                    failures.push((position, error));
                    running.extend(waiting.next().map(attempt));
                }
                Some(None) => running.extend(waiting.next().map(attempt)),
                None => return Err(all_failed(paths, failures)),
            },
            () = tokio::time::sleep(pool.config().timing.head_start), if waiting.len() > 0 => {
                running.extend(waiting.next().map(attempt));
            }
        }
    }
}

/// Told in the order of declaration, whichever failed first.
fn all_failed(paths: &[ConnectionPath], mut failures: Vec<(usize, LinkError)>) -> LinkError {
    failures.sort_by_key(|(position, _)| *position);
    let named = failures.into_iter().filter_map(|(position, error)| Some((paths.get(position)?.name.clone(), error)));
    LinkError::no_path(named.collect())
}

/// The order in which `count` paths are tried: as declared, but for the one that answered last when the better ones did
/// not.
pub(super) fn order(count: usize, answered_last: Option<usize>) -> Vec<usize> {
    let first = answered_last.filter(|position| *position < count);
    first.into_iter().chain((0..count).filter(|position| Some(*position) != first)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_answered_last_comes_first_and_none_is_left_out() {
        assert_eq!(order(3, None), [0, 1, 2]);
        assert_eq!(order(3, Some(2)), [2, 0, 1]);
        assert_eq!(order(2, Some(5)), [0, 1], "the paths were declared anew");
        assert!(order(0, None).is_empty());
    }
}
