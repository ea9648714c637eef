//! Who may do what: each namespace has one token, and prefixes that it covers (fleet contract §7.2).
use sha2::{Digest, Sha256};
use stado_fleet::store::object::read_token;
use std::collections::BTreeMap;
use std::path::PathBuf;
use subtle::ConstantTimeEq;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read its bytes.
    Get,
    /// Write it.
    Put,
    /// Find it in a list.
    List,
    /// Ask its facts.
    Stat,
    /// Remove it.
    Delete,
}

impl std::str::FromStr for Action {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "get" => Ok(Self::Get),
            "put" => Ok(Self::Put),
            "list" => Ok(Self::List),
            "stat" => Ok(Self::Stat),
            "delete" => Ok(Self::Delete),
            other => Err(format!("{other:?} is none of get, put, list, stat, delete")),
        }
    }
}

/// Actions on the keys below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// One that ends in `/` covers what is below it, any other the one key. An empty one covers everything.
    pub prefix: String,
    /// What is allowed there.
    pub actions: Vec<Action>,
}

impl Prefix {
    fn covers(&self, key: &str) -> bool {
        match self.prefix.as_str() {
            "" => true,
            subtree if subtree.ends_with('/') => key.starts_with(subtree),
            exact => key == exact,
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.covers(&other.prefix) || other.covers(&self.prefix)
    }
}

/// One namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Owner-only, one line; read at each request, so that a new token needs no restart.
    pub token_file: PathBuf,
    /// What the token covers.
    pub prefixes: Vec<Prefix>,
}

/// Every namespace that is served.
#[derive(Debug, Clone, Default)]
pub struct Access(BTreeMap<String, Namespace>);

/// Why a request is not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// Out of scope, or a wrong bearer; which of them, a stranger is not told.
    Unauthorized,
    /// Whether the bearer is right cannot be told.
    Unavailable(String),
}

impl Access {
    /// Namespaces by name.
    ///
    /// # Errors
    /// A sentence, when two prefixes of one namespace cover the same key.
    pub fn new(namespaces: BTreeMap<String, Namespace>) -> Result<Self, String> {
        for (name, namespace) in &namespaces {
            for (i, prefix) in namespace.prefixes.iter().enumerate() {
                if let Some(other) = namespace.prefixes.iter().take(i).find(|other| other.overlaps(prefix)) {
                    return Err(format!(
                        "object_api.namespaces.{name}: the prefixes {:?} and {:?} overlap; let one prefix cover each key",
                        other.prefix, prefix.prefix
                    ));
                }
            }
        }
        Ok(Self(namespaces))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Whether every namespace's token can be read now.
    pub(super) fn is_open(&self) -> bool {
        self.0.values().all(|namespace| read_token(&namespace.token_file).is_ok())
    }

    /// Whether a bearer may do this. Reads the token's file: blocks for as long as that takes.
    pub(super) fn allow(&self, namespace: &str, key: &str, action: Action, bearer: Option<&str>) -> Result<(), Denied> {
        let (Some(known), Some(bearer)) = (self.0.get(namespace), bearer) else { return Err(Denied::Unauthorized) };
        let token = read_token(&known.token_file).map_err(Denied::Unavailable)?;
        let same = Sha256::digest(bearer).ct_eq(&Sha256::digest(token));
        let in_scope = known.prefixes.iter().any(|prefix| prefix.covers(key) && prefix.actions.contains(&action));
        if bool::from(same) && in_scope { Ok(()) } else { Err(Denied::Unauthorized) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(prefix: &str) -> Prefix {
        Prefix { prefix: prefix.into(), actions: vec![Action::Get] }
    }

    fn access(prefixes: &[&str]) -> Result<Access, String> {
        let prefixes = prefixes.iter().map(|p| prefix(p)).collect();
        Access::new([("a".to_owned(), Namespace { token_file: "/none".into(), prefixes })].into())
    }

    #[test]
    fn a_prefix_covers_its_key_or_what_is_below_it() {
        assert!(prefix("queue/").covers("queue/a") && !prefix("queue/").covers("queue"));
        assert!(
            prefix("registry.json").covers("registry.json") && !prefix("registry.json").covers("registry.json.bak")
        );
        assert!(prefix("").covers("anything"));
    }

    #[test]
    fn overlapping_prefixes_are_refused() {
        assert!(access(&["queue/", "registry.json", "other/"]).is_ok());
        for overlapping in [["queue/", "queue/a"], ["queue/a/", "queue/"], ["", "x"], ["x", "x"]] {
            assert!(access(&overlapping).unwrap_err().contains("overlap"), "{overlapping:?}");
        }
    }

    #[test]
    fn a_token_that_cannot_be_read_is_no_refusal_of_the_bearer() {
        let access = access(&[""]).unwrap();
        assert!(matches!(access.allow("a", "x", Action::Get, Some("t")), Err(Denied::Unavailable(_))));
        assert_eq!(access.allow("a", "x", Action::Get, None), Err(Denied::Unauthorized));
        assert_eq!(access.allow("b", "x", Action::Get, Some("t")), Err(Denied::Unauthorized));
    }
}
