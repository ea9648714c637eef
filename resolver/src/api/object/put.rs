//! `PUT /api/object`: an object, or its metadata, perhaps on a condition.
use super::access::Action;
use super::answer::Answer;
use super::name::{Name, RELEASES};
use super::objects::{Condition, Metadata, Objects, Put, store_version};
use super::request::Request;
use super::routes::{Api, off_thread};
use super::upload::{self, Lost};
use serde_json::json;
use stado_fleet::store::{Expected, RegistryStore, Swap};
use tokio::io::AsyncRead;

const EXCLUSIVE: &str = "if_absent, if_version, and metadata_only are mutually exclusive";
const UNAUTHORIZED: &str = "unauthorized or non-immutable release write";
const OCTETS: &str = "application/octet-stream";
/// Times that an unconditional write of the registry is made again because another came between.
const TRIES: u32 = 32;

/// `None`: a framing error, or a client that went; the connection is closed.
pub(super) async fn put<R: AsyncRead + Unpin>(
    api: &Api,
    request: &Request,
    name: Name,
    stream: &mut R,
    early: Vec<u8>,
) -> Option<Answer> {
    let length = request.length?;
    if let Err(answer) = api.permitted(request, &name, Action::Put, UNAUTHORIZED).await {
        return Some(answer);
    }
    let version = request.query.get("if_version");
    let asked = [request.asks("if_absent"), version.is_some(), request.asks("metadata_only")];
    if asked.iter().filter(|asked| **asked).count() > 1 {
        return Some(Answer::error(400, EXCLUSIVE));
    }
    let [if_absent, _, metadata_only] = asked;
    if name.namespace == RELEASES && !if_absent {
        return Some(Answer::error(401, UNAUTHORIZED));
    }
    let metadata = match metadata(request) {
        Ok(metadata) => metadata,
        Err(why) => return Some(Answer::error(400, &why)),
    };
    if metadata_only {
        return Some(metadata_alone(api, name, metadata).await);
    }
    let condition = match version {
        Some(version) => Condition::Version(version.clone()),
        None if if_absent => Condition::Absent,
        None => Condition::None,
    };
    let stored = if Objects::is_registry(&name) {
        let bytes = upload::to_memory(stream, early, length).await;
        match bytes {
            Ok(bytes) => registry(&api.objects, &condition, bytes).await,
            Err(lost) => Err(lost),
        }
    } else {
        file(&api.objects, &name, &condition, &metadata, stream, early, length).await
    };
    match stored {
        Err(Lost::Gone) => None,
        Err(Lost::Disk(why)) => Some(Answer::error(500, &why)),
        Ok(put) => Some(answer(&name, &condition, &metadata, put)),
    }
}

fn answer(name: &Name, condition: &Condition, metadata: &Metadata, put: Put) -> Answer {
    let uri = name.to_string();
    match (put, condition) {
        (Put::Stored(version), Condition::Version(_)) => {
            Answer::json(200, &json!({"state": "stored", "uri": uri, "version": version}))
        }
        // The version of a creation is an addition of ours: without it its writer has to read back.
        (Put::Stored(version), Condition::Absent) => Answer::json(
            200,
            &json!({"state": "stored", "uri": uri, "content_type": metadata.get("content_type"), "version": version}),
        ),
        (Put::Stored(_), Condition::None) => {
            Answer::json(200, &json!({"state": "stored", "uri": uri, "content_type": metadata.get("content_type")}))
        }
        (Put::Exists, _) => Answer::json(409, &json!({"error": "object exists", "uri": uri})),
        (Put::Moved, _) => Answer::json(409, &json!({"error": "object version changed", "uri": uri})),
        (Put::Absent, _) => Answer::absent(&uri),
    }
}

/// The content type, and the header's object of `stado-*` texts.
fn metadata(request: &Request) -> Result<Metadata, String> {
    let mut metadata: Metadata = match &request.metadata {
        None => Metadata::new(),
        Some(text) => serde_json::from_str(text)
            .map_err(|e| format!("x-stado-object-metadata must be a JSON object of texts: {e}"))?,
    };
    if let Some(key) = metadata.keys().find(|key| !key.starts_with("stado-")) {
        return Err(format!("x-stado-object-metadata: the key {key:?} must begin with stado-"));
    }
    let content_type = request.content_type.clone().unwrap_or_else(|| OCTETS.to_owned());
    metadata.insert("content_type".into(), content_type);
    Ok(metadata)
}

async fn metadata_alone(api: &Api, name: Name, mut metadata: Metadata) -> Answer {
    let (objects, uri) = (api.objects.clone(), name.to_string());
    let done = off_thread(move || {
        // The bytes stay what they were.
        let kept = objects.metadata(&name).remove("content_type");
        kept.map(|content_type| metadata.insert("content_type".into(), content_type));
        objects.put_metadata(&name, &metadata)
    });
    match done.await {
        Ok(true) => Answer::json(200, &json!({"state": "metadata-updated", "uri": uri})),
        Ok(false) => Answer::absent(&uri),
        Err(error) => Answer::error(500, &error.to_string()),
    }
}

async fn file<R: AsyncRead + Unpin>(
    objects: &Objects,
    name: &Name,
    condition: &Condition,
    metadata: &Metadata,
    stream: &mut R,
    early: Vec<u8>,
    length: u64,
) -> Result<Put, Lost> {
    let path = objects.path(name).map_err(|e| Lost::Disk(e.to_string()))?;
    let uploaded = upload::to_file(stream, early, length, path).await?;
    let (objects, name, condition, metadata) = (objects.clone(), name.clone(), condition.clone(), metadata.clone());
    let put = off_thread(move || objects.put(&name, uploaded.staged, uploaded.version, &condition, &metadata));
    put.await.map_err(|e| Lost::Disk(e.to_string()))
}

/// Through the local store, so that its history and its lock hold for what comes through here too.
async fn registry(objects: &Objects, condition: &Condition, bytes: Vec<u8>) -> Result<Put, Lost> {
    let disk = |e: stado_fleet::store::StoreError| Lost::Disk(e.sentence);
    let store = objects.registry();
    for _ in 0..TRIES {
        let expected = match condition {
            Condition::Absent => Expected::Absent,
            Condition::Version(version) => match store_version(version) {
                Some(version) => Expected::Version(version),
                None => return Ok(Put::Moved),
            },
            Condition::None => match store.read().await.map_err(disk)? {
                Some(held) => Expected::Version(held.version),
                None => Expected::Absent,
            },
        };
        match (store.swap(expected, bytes.clone()).await.map_err(disk)?, condition) {
            (Swap::Applied(version), _) => return Ok(Put::Stored(version.to_string())),
            (Swap::Unknown(error), _) => return Err(disk(error)),
            (Swap::Conflict { .. }, Condition::Absent) => return Ok(Put::Exists),
            (Swap::Conflict { .. }, Condition::Version(_)) => return Ok(Put::Moved),
            (Swap::Absent, Condition::Version(_) | Condition::Absent) => return Ok(Put::Absent),
            // Another writer was first; this one asked for no order.
            (Swap::Conflict { .. } | Swap::Absent, Condition::None) => {}
        }
    }
    Err(Lost::Disk("too many writers at once; try again".into()))
}
