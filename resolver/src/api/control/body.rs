//! Reading a request body through the limit.
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// What is read of a body; a longer one is as if it ended here (mesh contract §1.1).
const LIMIT: usize = 1 << 20;
/// What is thrown away of a longer one, so that its sender gets to read the answer.
const DRAIN: usize = 16 << 20;

/// The first 1 MiB. A body that breaks off is what came of it.
pub(super) async fn read(mut body: Incoming) -> Vec<u8> {
    let (mut kept, mut dropped) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let room = data.len().min(LIMIT - kept.len());
        kept.extend_from_slice(data.get(..room).unwrap_or_default());
        dropped += data.len() - room;
        if dropped > DRAIN {
            break;
        }
    }
    kept
}
