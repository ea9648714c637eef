//! The state file as a value: read, changed and written with everything in it that is not ours kept (mesh contract §4). Pure.
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `{"version":1,"<key>":{name: value, …}, …}`; unknown keys are kept in place.
#[derive(Debug, Clone)]
pub(crate) struct Document<V> {
    root: Map<String, Value>,
    key: &'static str,
    entries: BTreeMap<String, V>,
}

/// Why bytes are no such document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Not parsable, or values of a wrong type: set aside, start empty.
    Corrupt(String),
    /// Written by a newer daemon: refuse to start.
    Version(String),
}

impl<V: Serialize + DeserializeOwned + Clone> Document<V> {
    /// Nothing remembered.
    pub(crate) fn empty(key: &'static str) -> Self {
        Self { root: Map::new(), key, entries: BTreeMap::new() }
    }

    /// Reads a document; no bytes at all are an empty one.
    pub(crate) fn parse(key: &'static str, bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.is_empty() {
            return Ok(Self::empty(key));
        }
        let corrupt = |error: serde_json::Error| Unreadable::Corrupt(error.to_string());
        let root: Option<Map<String, Value>> = serde_json::from_slice(bytes).map_err(corrupt)?;
        let root = root.unwrap_or_default();
        check_version(root.get("version"))?;
        let entries: Option<BTreeMap<String, V>> = match root.get(key) {
            None => None,
            Some(value) => serde_json::from_value(value.clone()).map_err(corrupt)?,
        };
        Ok(Self { root, key, entries: entries.unwrap_or_default() })
    }

    /// The bytes of the file: two-space-indented, no trailing newline.
    pub(crate) fn render(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut root = self.root.clone();
        if root.get("version").and_then(Value::as_i64) != Some(1) && root.insert("version".into(), 1.into()).is_none() {
            // A version that was not there belongs in front, as the first daemon writes it.
            root.shift_insert(0, "version".into(), 1.into());
        }
        root.insert(self.key.into(), serde_json::to_value(&self.entries)?);
        serde_json::to_vec_pretty(&root)
    }

    /// All entries, by name.
    pub(crate) fn entries(&self) -> &BTreeMap<String, V> {
        &self.entries
    }

    /// Other entries in place of all.
    pub(crate) fn replace(&mut self, entries: BTreeMap<String, V>) {
        self.entries = entries;
    }

    /// Sets or removes one entry; returns what was there.
    pub(crate) fn set(&mut self, name: &str, value: Option<V>) -> Option<V> {
        match value {
            Some(value) => self.entries.insert(name.to_owned(), value),
            None => self.entries.remove(name),
        }
    }
}

/// Absent, null, 0 and 1 are version 1; negative numbers are older ones.
fn check_version(version: Option<&Value>) -> Result<(), Unreadable> {
    match version {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Number(number)) => {
            let text = number.to_string();
            match number.as_i64() {
                Some(..=1) => Ok(()),
                None if !text.bytes().all(|b| b.is_ascii_digit()) => {
                    Err(Unreadable::Corrupt(format!("version {text}")))
                }
                _ => Err(Unreadable::Version(text)),
            }
        }
        Some(other) => Err(Unreadable::Corrupt(format!("version {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Document<i64>, Unreadable> {
        Document::parse("tcp_ports", text.as_bytes())
    }

    fn render(document: &Document<i64>) -> String {
        String::from_utf8(document.render().unwrap()).unwrap()
    }

    #[test]
    fn the_file_has_the_contracts_bytes() {
        let mut document = Document::empty("tcp_ports");
        assert_eq!(render(&document), "{\n  \"version\": 1,\n  \"tcp_ports\": {}\n}");
        document.set("checkout.postgres", Some(15432));
        document.set("billing", Some(15001));
        assert_eq!(
            render(&document),
            "{\n  \"version\": 1,\n  \"tcp_ports\": {\n    \"billing\": 15001,\n    \"checkout.postgres\": 15432\n  }\n}"
        );
    }

    #[test]
    fn old_and_missing_versions_are_read_as_one_and_newer_ones_refused() {
        for text in ["", "null", "{}", r#"{"version":0}"#, r#"{"version":null}"#, r#"{"version":1,"tcp_ports":null}"#] {
            assert!(parse(text).is_ok(), "{text}");
        }
        assert_eq!(parse(r#"{"version":2}"#).unwrap_err(), Unreadable::Version("2".into()));
        let huge = "99999999999999999999999";
        assert_eq!(parse(&format!(r#"{{"version":{huge}}}"#)).unwrap_err(), Unreadable::Version(huge.into()));
        let mut old = parse(r#"{"tcp_ports":{},"x":1}"#).unwrap();
        old.set("a", Some(1));
        assert!(render(&old).starts_with("{\n  \"version\": 1,\n  \"tcp_ports\""));
    }

    #[test]
    fn wrong_types_and_broken_text_are_corrupt() {
        for text in [" ", "[]", "{", r#"{"tcp_ports":[]}"#, r#"{"tcp_ports":{"a":"1"}}"#, r#"{"tcp_ports":{"a":1.5}}"#]
        {
            assert!(matches!(parse(text), Err(Unreadable::Corrupt(_))), "{text}");
        }
        assert!(matches!(parse(r#"{"version":"1"}"#), Err(Unreadable::Corrupt(_))));
        assert!(matches!(parse(&"\0".repeat(64)), Err(Unreadable::Corrupt(_))));
    }

    #[test]
    fn unknown_keys_and_their_numbers_survive() {
        let mut document = parse(r#"{"later":{"n":1.50e3},"version":1,"tcp_ports":{"a":70000},"z":[1]}"#).unwrap();
        document.set("b", Some(2));
        let back: Value = serde_json::from_str(&render(&document)).unwrap();
        let keys: Vec<&String> = back.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["later", "version", "tcp_ports", "z"]);
        assert!(render(&document).contains("1.50e") && render(&document).contains("70000"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Document::<i64>::parse("tcp_ports", &bytes);
        }

        #[test]
        fn what_was_set_is_read_back(entries in proptest::collection::btree_map("[a-z]{1,8}", 1i64..65536, 0..20)) {
            let mut document = Document::empty("tcp_ports");
            for (name, port) in &entries {
                document.set(name, Some(*port));
            }
            let back = Document::<i64>::parse("tcp_ports", &document.render().unwrap()).unwrap();
            prop_assert_eq!(back.entries(), &entries);
        }
    }
}
