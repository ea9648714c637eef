//! Where an answer came from and how old it is, for `--json`.
use jiff::Timestamp;
use serde_json::{Value, json};
use stado_fleet::authority::{Answer, Origin};

/// `{"source","location","generation","directory_generation","age_seconds"}`: an addition of ours, where the contract
/// leaves room.
pub(crate) fn provenance(answer: &Answer) -> Value {
    let source = match answer.origin {
        Origin::Store => "store",
        Origin::Authority => "authority",
        Origin::LastGood => "last-known-good",
    };
    // A copy from the future has no age that could be told.
    let age = u64::try_from(Timestamp::now().duration_since(answer.read_at).as_secs()).ok();
    let directory = answer.snapshot.valid.registry.directory.as_ref().map(|d| d.generation.0);
    json!({
        "source": source, "location": answer.source.location(), "generation": answer.snapshot.store_version,
        "directory_generation": directory, "age_seconds": age,
    })
}
