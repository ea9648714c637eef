//! Writes that mean the same on any document: made again on what another writer left.
use crate::fault::Class;
use std::time::Duration;

/// A fleet may join or leave in the same second.
const TRIES: u32 = 40;

/// Makes `write` again while another writer was first, after a pause at random: writers that met once do not meet again.
/// `class` tells of an error what it is.
///
/// # Errors
/// Its own, the last one.
pub async fn again_while_moved<T, E, F>(mut write: impl FnMut() -> F, class: impl Fn(&E) -> Class) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut tries = 1;
    loop {
        match write().await {
            Err(error) if class(&error) == Class::Moved && tries < TRIES => {
                let most = 20_u64 << tries.min(6);
                tokio::time::sleep(Duration::from_millis(rand::random_range(0..=most))).await;
                tries += 1;
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    async fn written(moves: u32, then: Result<(), Class>) -> (Result<(), Class>, u32) {
        let made = Cell::new(0);
        let write = || {
            made.set(made.get() + 1);
            let moved = made.get() <= moves;
            async move { if moved { Err(Class::Moved) } else { then } }
        };
        let ended = again_while_moved(write, |class| *class).await;
        (ended, made.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_made_again_while_others_are_first_and_only_then() {
        assert_eq!(written(5, Ok(())).await, (Ok(()), 6));
        assert_eq!(written(2, Err(Class::Refused)).await, (Err(Class::Refused), 3), "another failure is its end");
        assert_eq!(written(u32::MAX, Ok(())).await, (Err(Class::Moved), TRIES), "nor for ever");
    }
}
