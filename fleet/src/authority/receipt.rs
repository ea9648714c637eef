//! The receipts of `registry push` and `registry pull` (fleet contract §6.2, §6.3).
use crate::document::Document;
use crate::name::StoreVersion;
use serde::{Deserialize, Serialize};

const PUSH: &str = "stado.registry-push-receipt.v1";
const PULL: &str = "stado.registry-pull-receipt.v1";

/// `registry push --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReceipt {
    /// `stado.registry-push-receipt.v1`.
    pub schema: String,
    /// `pushed` or `conflict`.
    pub state: String,
    /// Where.
    pub location: String,
    /// The generation the write was conditional on by request.
    #[serde(default)]
    pub expected_generation: Option<StoreVersion>,
    /// For a conflict: what was found; null when nothing was, or it raced.
    #[serde(default)]
    pub actual_generation: Option<StoreVersion>,
    /// The new generation; null for a conflict.
    #[serde(default)]
    pub generation: Option<StoreVersion>,
    /// The one it replaced. Missing when the registry was created, null for a conflict.
    #[serde(default, with = "maybe_missing", skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Option<StoreVersion>>,
}

impl PushReceipt {
    /// A write that was applied; `replaced` is `None` when it created the registry.
    pub fn pushed(
        location: String,
        expected: Option<StoreVersion>,
        generation: StoreVersion,
        replaced: Option<StoreVersion>,
    ) -> Self {
        Self {
            schema: PUSH.into(),
            state: "pushed".into(),
            location,
            expected_generation: expected,
            actual_generation: None,
            generation: Some(generation),
            replaced: replaced.map(Some),
        }
    }

    /// A write that found another generation.
    pub fn conflict(location: String, expected: Option<StoreVersion>, found: Option<StoreVersion>) -> Self {
        Self {
            schema: PUSH.into(),
            state: "conflict".into(),
            location,
            expected_generation: expected,
            actual_generation: found,
            generation: None,
            replaced: Some(None),
        }
    }

    /// The line for people: `pushed <path> -> <location> generation=<new> replaced=<old>`, or `… created`.
    pub fn text(&self, path: &str) -> String {
        let generation = self.generation.as_ref().map_or("-", StoreVersion::as_str);
        let tail = match &self.replaced {
            Some(Some(old)) => format!("replaced={old}"),
            _ => "created".to_owned(),
        };
        format!("{} {path} -> {} generation={generation} {tail}", self.state, self.location)
    }
}

/// `registry pull --with-generation`.
#[derive(Debug, Clone, Serialize)]
pub struct PullReceipt<'a> {
    schema: &'static str,
    location: &'a str,
    generation: &'a StoreVersion,
    document: &'a serde_json::Value,
}

impl<'a> PullReceipt<'a> {
    /// From one read.
    pub fn new(location: &'a str, generation: &'a StoreVersion, document: &'a Document) -> Self {
        Self { schema: PULL, location, generation, document: document.value() }
    }
}

/// A key that is missing, null or a value: three different things.
mod maybe_missing {
    use super::StoreVersion;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Option<Option<StoreVersion>>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<StoreVersion>>, D::Error> {
        Option::deserialize(from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> StoreVersion {
        text.parse().unwrap()
    }

    #[test]
    fn receipts_have_the_shape_of_the_contract() {
        let pushed = PushReceipt::pushed("l".into(), Some(version("a")), version("b"), Some(version("a")));
        let created = PushReceipt::pushed("l".into(), None, version("b"), None);
        let conflict = PushReceipt::conflict("l".into(), Some(version("a")), None);
        let shapes = [
            r#"{"schema":"stado.registry-push-receipt.v1","state":"pushed","location":"l","expected_generation":"a","actual_generation":null,"generation":"b","replaced":"a"}"#,
            r#"{"schema":"stado.registry-push-receipt.v1","state":"pushed","location":"l","expected_generation":null,"actual_generation":null,"generation":"b"}"#,
            r#"{"schema":"stado.registry-push-receipt.v1","state":"conflict","location":"l","expected_generation":"a","actual_generation":null,"generation":null,"replaced":null}"#,
        ];
        for (receipt, shape) in [&pushed, &created, &conflict].into_iter().zip(shapes) {
            assert_eq!(serde_json::to_string(receipt).unwrap(), shape);
            assert_eq!(serde_json::from_str::<PushReceipt>(shape).unwrap(), *receipt);
        }
        assert_eq!(pushed.text("f.json"), "pushed f.json -> l generation=b replaced=a");
        assert_eq!(created.text("-"), "pushed - -> l generation=b created");
    }
}
