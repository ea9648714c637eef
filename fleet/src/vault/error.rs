//! What goes wrong with a vault.
use crate::fault::{Blame, Class, Faulty};

/// A vault that cannot be used, or does not answer. The sentence never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct VaultError {
    /// Whole sentence.
    pub sentence: String,
    /// Class for the exit code.
    pub class: Class,
}

impl VaultError {
    pub(super) fn new(class: Class, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class }
    }
}

impl Faulty for VaultError {
    fn blame(&self) -> Blame {
        match self.class {
            Class::Auth => Blame::Credentials,
            Class::Usage | Class::NotFound | Class::Refused => Blame::Caller,
            Class::InfraDown | Class::Timeout => Blame::Remote,
            _ => Blame::ThisHost,
        }
    }
    fn class(&self) -> Class {
        self.class
    }
}

impl From<crate::disk::DiskError> for VaultError {
    fn from(error: crate::disk::DiskError) -> Self {
        Self::new(error.class(), error.to_string())
    }
}
