//! What a fuzzer calls: bounded, without side effects, and it panics where the code's own promises are broken.
use crate::directory::Directory;
use crate::document::Document;
use crate::validate::validate;
use std::sync::Arc;

/// Larger inputs teach nothing more.
const LARGEST: usize = 1 << 20;

/// Reads any bytes as a registry, and everything that a valid one leads to.
///
/// # Panics
/// When a document does not come back as it was read, or findings contradict themselves.
pub fn registry(bytes: &[u8]) {
    let Some(bytes) = bytes.get(..bytes.len().min(LARGEST)) else { return };
    let Ok(document) = Document::parse(bytes) else { return };
    assert!(document.bytes() == bytes, "an unedited document passes as its bytes");
    let _ = document.unknown_keys();
    if document.duplicate_keys().is_empty() {
        let again = Document::parse(Document::from_value(document.value().clone()).bytes());
        assert!(again.is_ok_and(|again| again.same_as(&document)), "a document that is written again says the same");
    }
    match validate(document.clone()) {
        Err(invalid) => assert!(!invalid.0.is_empty(), "an invalid document has a finding"),
        Ok(valid) => {
            let registry = valid.registry;
            let Some(host) = registry.targets.keys().next().cloned() else { return };
            let directory = Directory::build(Arc::clone(&registry), host);
            for (name, service) in registry.directory.iter().flat_map(|d| &d.services) {
                for consumer in service.consumers.keys() {
                    let _ = directory.resolve(name.as_str(), consumer.as_str());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{EXAMPLES, example};
    use proptest::prelude::*;

    /// One damage to a text.
    #[derive(Debug, Clone)]
    enum Damage {
        Cut(prop::sample::Index),
        Flip(prop::sample::Index, u8),
        Insert(prop::sample::Index, String),
        Repeat(prop::sample::Index, prop::sample::Index),
    }

    fn damage() -> impl Strategy<Value = Damage> {
        let tokens = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "null",
            "1e999",
            "-0",
            "\\u0000",
            "{}",
            "\"name\":\"a\",",
        ]);
        prop_oneof![
            1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
            4 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, to)| Damage::Flip(at, to)),
            6 => (any::<prop::sample::Index>(), tokens).prop_map(|(at, token)| Damage::Insert(at, token.to_owned())),
            2 => (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(a, b)| Damage::Repeat(a, b)),
        ]
    }

    fn apply(bytes: &mut Vec<u8>, damage: Damage) {
        if bytes.is_empty() {
            return;
        }
        match damage {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Flip(at, to) => {
                let at = at.index(bytes.len());
                bytes[at] = to;
            }
            Damage::Insert(at, token) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, token.bytes());
            }
            Damage::Repeat(a, b) => {
                let (a, b) = (a.index(bytes.len()), b.index(bytes.len()));
                let part: Vec<u8> = bytes[a.min(b)..a.max(b)].iter().take(2000).copied().collect();
                bytes.splice(a..a, part);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
        #[test]
        fn a_damaged_registry_never_does_more_than_be_refused(
            name in prop::sample::select(EXAMPLES.iter().copied().filter(|n| *n != "large").collect::<Vec<_>>()),
            damages in proptest::collection::vec(damage(), 1..6),
        ) {
            let mut bytes = example(name).bytes().to_vec();
            damages.into_iter().for_each(|damage| apply(&mut bytes, damage));
            registry(&bytes);
        }
        #[test]
        fn any_bytes_never_do_more_than_be_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            registry(&bytes);
        }
    }

    #[test]
    fn the_examples_keep_every_promise() {
        EXAMPLES.iter().for_each(|name| registry(example(name).bytes()));
    }
}
