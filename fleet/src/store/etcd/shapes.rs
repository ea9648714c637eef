//! What etcd's gateway says: numbers of 64 bits are texts there, keys and values are base64.
use crate::name::StoreVersion;
use crate::store::Stored;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// Bytes as the gateway takes them.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The head of every answer.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Header {
    #[serde(default)]
    revision: String,
}

impl Header {
    /// The cluster's revision when it answered.
    pub(super) fn revision(&self) -> Option<u64> {
        self.revision.parse().ok()
    }

    /// What a transaction that succeeded stored.
    pub(super) fn version(&self) -> Option<StoreVersion> {
        self.revision().filter(|revision| *revision > 0)?.to_string().parse().ok()
    }
}

/// One key.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Pair {
    #[serde(default)]
    mod_revision: String,
    #[serde(default)]
    value: String,
}

impl Pair {
    pub(super) fn version(&self) -> Result<StoreVersion, String> {
        let revision = self.mod_revision.parse::<u64>().map_err(|_| "it names no revision of a key".to_owned())?;
        revision.to_string().parse().map_err(|e: crate::name::NameError| e.0)
    }
}

/// `/v3/kv/range`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Range {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    kvs: Vec<Pair>,
}

impl Range {
    pub(super) fn version(&self) -> Result<Option<StoreVersion>, String> {
        self.kvs.first().map(Pair::version).transpose()
    }

    pub(super) fn stored(&self) -> Result<Option<Stored>, String> {
        let Some(pair) = self.kvs.first() else { return Ok(None) };
        let bytes = STANDARD.decode(&pair.value).map_err(|e| format!("its value is not readable: {e}"))?;
        Ok(Some(Stored { bytes: bytes.into(), version: pair.version()? }))
    }
}

/// `/v3/kv/txn`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Txn {
    #[serde(default)]
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    responses: Vec<Op>,
}

#[derive(Debug, Clone, Deserialize)]
struct Op {
    #[serde(default)]
    response_range: Option<Range>,
}

impl Txn {
    /// What is there instead, of one that did not succeed.
    pub(super) fn found(&self) -> Result<Option<StoreVersion>, String> {
        let range = self.responses.iter().find_map(|op| op.response_range.as_ref());
        range.map_or(Ok(None), Range::version)
    }
}

/// `/v3/auth/authenticate`.
#[derive(Debug, Deserialize)]
pub(super) struct Token {
    pub(super) token: String,
}

/// An answer that is none.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Trouble {
    #[serde(default)]
    pub(super) code: Option<i64>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) error: Option<serde_json::Value>,
}

/// One line of a watch.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Line {
    #[serde(default)]
    pub(super) result: Option<Told>,
    #[serde(default)]
    pub(super) error: Option<serde_json::Value>,
}

/// What a watch tells.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Told {
    #[serde(default)]
    pub(super) header: Header,
    /// The first answer to a request: its revision may be ahead of changes that are still to be told.
    #[serde(default)]
    pub(super) created: bool,
    #[serde(default)]
    pub(super) canceled: bool,
    #[serde(default)]
    pub(super) cancel_reason: String,
    /// Set when the revision that was asked for is no longer there.
    #[serde(default)]
    pub(super) compact_revision: Option<String>,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

/// A change of the key.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// `PUT`, which is left out, or `DELETE`.
    #[serde(default, rename = "type")]
    kind: String,
    kv: Pair,
}

impl Event {
    /// The version that is there now; `None` when the key is gone.
    pub(super) fn version(&self) -> Result<Option<StoreVersion>, String> {
        if self.kind == "DELETE" { Ok(None) } else { self.kv.version().map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_gateway_are_read() {
        let range: Range = serde_json::from_str(
            r#"{"header":{"cluster_id":"1","revision":"12","raft_term":"2"},
                "kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"9","version":"8","value":"e30="}],"count":"1"}"#,
        )
        .unwrap();
        let stored = range.stored().unwrap().unwrap();
        assert_eq!((&*stored.bytes, stored.version.as_str(), range.header.revision()), (&b"{}"[..], "9", Some(12)));
        let none: Range = serde_json::from_str(r#"{"header":{"revision":"1"}}"#).unwrap();
        assert!(none.stored().unwrap().is_none());

        let txn: Txn =
            serde_json::from_str(r#"{"header":{"revision":"13"},"succeeded":true,"responses":[{}]}"#).unwrap();
        assert_eq!(txn.header.version().unwrap().as_str(), "13");
        let lost = r#"{"header":{"revision":"13"},"responses":[{"response_range":{"header":{},"kvs":[{"mod_revision":"9"}]}}]}"#;
        let lost: Txn = serde_json::from_str(lost).unwrap();
        assert!(!lost.succeeded && lost.found().unwrap().unwrap().as_str() == "9");

        let told = |text: &str| serde_json::from_str::<Line>(text).unwrap().result.unwrap();
        let put =
            told(r#"{"result":{"header":{"revision":"14"},"events":[{"kv":{"mod_revision":"14","value":"e30="}}]}}"#);
        assert_eq!(put.events[0].version().unwrap().unwrap().as_str(), "14");
        let gone = told(r#"{"result":{"events":[{"type":"DELETE","kv":{"mod_revision":"15"}}]}}"#);
        assert_eq!(gone.events[0].version().unwrap(), None);
        let compacted = told(r#"{"result":{"canceled":true,"compact_revision":"7"}}"#);
        assert!(compacted.canceled && compacted.compact_revision.is_some());
    }
}
