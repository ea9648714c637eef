//! A failed read or write of the registry.
use crate::fault::{Blame, Class, Faulty};
use crate::name::{StoreVersion, TargetName};
use crate::store::StoreError;

/// A failed read or write of the registry; `Display` is the contract's sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct RegistryError {
    /// Sentence.
    pub sentence: String,
    /// Class for the exit code; `Moved` for a moved generation.
    pub class: Class,
    /// For `Moved`: the version that was found (`None` = absent or raced).
    pub found: Option<StoreVersion>,
    /// Why each connection path to the authority did not carry anything, when none did.
    pub(super) unreached: Option<String>,
    /// For a write that was applied and could not be confirmed because another one landed since: what it wrote.
    pub(super) overtaken: Option<StoreVersion>,
    /// For a document that was read and is no valid registry: which.
    pub rejected: Option<Box<Rejected>>,
}

/// A document that was read and is no valid registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Its version.
    pub version: StoreVersion,
    /// Its directory generation, as far as it could be read.
    pub generation: Option<u64>,
    /// Its authority epoch; 0 without one.
    pub epoch: u64,
}

impl RegistryError {
    /// An error of a class.
    pub fn new(class: Class, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class, found: None, unreached: None, overtaken: None, rejected: None }
    }

    /// No connection path carried a read; `causes` says why of each.
    pub(super) fn unreached(class: Class, causes: String) -> Self {
        let sentence = format!("no registry authority SSH connection path answered ({causes})");
        Self { unreached: Some(causes), ..Self::new(class, sentence) }
    }

    /// The same failure where a write begins with it (§3.5).
    pub(super) fn of_write(self, authority: &TargetName) -> Self {
        match &self.unreached {
            Some(causes) => Self::write_unreached(self.class, authority, causes),
            None => self,
        }
    }

    /// No connection path carried a write.
    pub(super) fn write_unreached(class: Class, authority: &TargetName, causes: &str) -> Self {
        let class = if class == Class::Auth { class } else { Class::InfraDown };
        let sentence =
            format!("registry write through authority {authority}: no SSH connection path answered ({causes})");
        Self::new(class, sentence)
    }

    /// There is no registry at `location`.
    pub fn absent(location: &str) -> Self {
        Self::new(Class::NotFound, format!("no registry document at {location}"))
    }

    /// What is at `location` is not a valid registry.
    pub(super) fn invalid(location: &str, why: &dyn std::fmt::Display) -> Self {
        Self::new(Class::Config, format!("invalid registry document at {location}: {why}"))
    }

    /// The same, of a document that was read.
    pub(super) fn with_rejected(self, rejected: Rejected) -> Self {
        Self { rejected: Some(Box::new(rejected)), ..self }
    }

    /// The conflict sentence of §6.2. `expected` is `None` for a registry that was to be created.
    pub(super) fn moved(location: &str, expected: Option<&StoreVersion>, found: Found) -> Self {
        let expected = expected.map_or("0", StoreVersion::as_str);
        let what = match &found {
            Found::At(version) => format!("{location} is at generation {version}"),
            Found::Nothing => format!("there is no document at {location}"),
            Found::Raced => format!("{location} moved between this command's read and its write"),
        };
        let sentence = format!(
            "registry write refused: it is conditional on generation {expected} and {what}. Another writer got there first, \
             and nothing was written: read the registry again, make the change on what is there now, and push it \
             conditional on that generation. Exit 75 means exactly this and nothing else: the store is healthy and the \
             document is valid."
        );
        let found = if let Found::At(version) = found { Some(version) } else { None };
        Self { found, ..Self::new(Class::Moved, sentence) }
    }
}

/// What a conflicting write found.
pub(super) enum Found {
    At(StoreVersion),
    Nothing,
    Raced,
}

impl From<Option<StoreVersion>> for Found {
    fn from(found: Option<StoreVersion>) -> Self {
        found.map_or(Self::Raced, Self::At)
    }
}

impl From<StoreError> for RegistryError {
    fn from(e: StoreError) -> Self {
        Self::new(e.class, e.sentence)
    }
}

impl Faulty for RegistryError {
    fn blame(&self) -> Blame {
        match self.class {
            Class::Auth => Blame::Credentials,
            Class::InfraDown | Class::Timeout | Class::RateLimit | Class::Refused => Blame::Remote,
            Class::Unknown => Blame::Stado,
            Class::Config | Class::NotFound | Class::Moved | Class::Usage => Blame::Caller,
        }
    }

    fn class(&self) -> Class {
        self.class
    }
}
