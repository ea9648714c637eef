//! What a host was given and did not take into force.
use serde::{Deserialize, Serialize};

/// A registry that was read and refused (an addition of Stado). It stands until another one is taken into force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedRegistry {
    /// Where it was read: a store, or `<target>:registry.json`.
    pub from: String,
    /// Its directory generation, as far as it could be read.
    pub generation: Option<u64>,
    /// Its store version.
    pub store_version: Option<String>,
    /// Its authority epoch, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Why, in the words of the refusal.
    pub reason: String,
    /// When this version was refused for the first time, as [`super::stamp`] writes it.
    pub since: String,
}

impl RefusedRegistry {
    /// As it stands after `next` was refused: the same version is refused since it was first.
    #[must_use]
    pub fn or_since(self, before: Option<&Self>) -> Self {
        let same = |old: &&Self| old.store_version == self.store_version && old.from == self.from;
        match before.filter(same) {
            Some(old) => Self { since: old.since.clone(), ..self },
            None => self,
        }
    }

    /// `generation 4 of control:registry.json (version 945077b5)`.
    pub fn name(&self) -> String {
        let generation = self.generation.map_or_else(|| "the registry".to_owned(), |g| format!("generation {g}"));
        let version = self.store_version.as_deref().map(|version| format!(" (version {version})")).unwrap_or_default();
        format!("{generation} of {}{version}", self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_version_is_refused_since_it_was_first() {
        let refused = |version: &str, since: &str| RefusedRegistry {
            from: "control:registry.json".into(),
            generation: Some(4),
            store_version: Some(version.into()),
            since: since.into(),
            ..RefusedRegistry::default()
        };
        let first = refused("a", "1");
        assert_eq!(refused("a", "2").or_since(Some(&first)).since, "1");
        assert_eq!(refused("b", "2").or_since(Some(&first)).since, "2");
        assert_eq!(refused("a", "2").or_since(None).since, "2");
        assert_eq!(first.name(), "generation 4 of control:registry.json (version a)");
        let unread = RefusedRegistry { from: "local:registry.json".into(), ..RefusedRegistry::default() };
        assert_eq!(unread.name(), "the registry of local:registry.json");
    }
}
