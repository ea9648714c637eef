//! Writes that mean the same on any document: done again on what another writer left.
use crate::authority::RegistryError;
use crate::fault::Class;
use std::time::Duration;

/// A fleet may join or leave in the same second.
const TRIES: u32 = 40;

/// Does `write` again while another writer was first, after a pause at random: writers that met once do not meet again.
///
/// # Errors
/// Its own, the last one.
pub(super) async fn again_while_moved<T, F>(mut write: impl FnMut() -> F) -> Result<T, RegistryError>
where
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut tries = 1;
    loop {
        match write().await {
            Err(error) if error.class == Class::Moved && tries < TRIES => {
                let most = 10_u64 << tries.min(5);
                tokio::time::sleep(Duration::from_millis(rand::random_range(0..=most))).await;
                tries += 1;
            }
            ended => return ended,
        }
    }
}
