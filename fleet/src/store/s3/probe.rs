//! Whether a store keeps the one promise that the registry needs: a write that is conditional on an old version fails. Many
//! servers speak the interface and ignore the condition, which nobody would notice before an update is lost.
use super::Proof;
use super::engine::Engine;
use super::outcome::{Found, Put};
use crate::fault::Class;
use crate::store::{Expected, StoreError};

/// Tries it on an object of its own beside `key`, which is taken away again.
pub(super) async fn probe(engine: &dyn Engine, key: &str, location: &str) -> Result<Proof, StoreError> {
    let beside = key.rsplit_once('/').map_or(String::new(), |(prefix, _)| format!("{prefix}/"));
    let trial = format!("{beside}.stado-probe/{}", uuid::Uuid::new_v4());
    let proof = tried(engine, &trial, location).await;
    engine.delete(&trial).await;
    proof
}

async fn tried(engine: &dyn Engine, trial: &str, location: &str) -> Result<Proof, StoreError> {
    let unreachable = |e: StoreError| {
        let sentence = format!("registry store unreachable ({location}): it could not be tried: {}", e.sentence);
        StoreError { sentence, ..e }
    };
    let first = match engine.put(trial, &Expected::Absent, b"1".to_vec()).await {
        Ok(Put::Written(version)) => version,
        Ok(Put::Refused) => return Err(broken(location, "it refused to create an object that was not there")),
        Ok(Put::Unknown(e)) => return Err(unreachable(e)),
        Err(e) if e.class == Class::Auth => {
            let sentence =
                format!("registry store unreachable ({location}): these keys may not write there: {}", e.sentence);
            return Ok(Proof::ReadOnly(sentence));
        }
        Err(e) => return Err(unreachable(e)),
    };
    match engine.put(trial, &Expected::Absent, b"2".to_vec()).await.map_err(unreachable)? {
        Put::Refused => {}
        Put::Unknown(e) => return Err(unreachable(e)),
        Put::Written(_) => {
            return Err(broken(location, "it wrote over an object that was to be created (If-None-Match)"));
        }
    }
    let condition = Expected::Version(first);
    match engine.put(trial, &condition, b"3".to_vec()).await.map_err(unreachable)? {
        Put::Written(_) => {}
        Put::Unknown(e) => return Err(unreachable(e)),
        Put::Refused => {
            return Err(broken(location, "it refused a write that was conditional on the version it had just named"));
        }
    }
    match engine.put(trial, &condition, b"4".to_vec()).await.map_err(unreachable)? {
        Put::Refused => {}
        Put::Unknown(e) => return Err(unreachable(e)),
        Put::Written(_) => {
            return Err(broken(location, "it let a write through that was conditional on an old version (If-Match)"));
        }
    }
    match engine.get(trial, None).await.map_err(unreachable)? {
        Found::Stored(stored) if *stored.bytes == *b"3" => Ok(Proof::Writable),
        _ => Err(broken(location, "it does not read back what it has just stored")),
    }
}

fn broken(location: &str, how: &str) -> StoreError {
    StoreError {
        sentence: format!(
            "the store at {location} cannot keep the registry: {how}, so that two writers would lose each other's changes. \
             Use a store that keeps conditions on writes (docs/stores.md names some), or keep the registry in a directory of \
             its authority"
        ),
        class: Class::Config,
    }
}
