//! Why a step failed.
use crate::fault::{Blame, Class, Faulty};

/// A step that failed; `Display` says which, where and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct PlacementError {
    /// Sentence.
    pub sentence: String,
    /// Who has to act.
    pub blame: Blame,
    /// Decides the exit code.
    pub class: Class,
    /// It cannot be told whether it was done: neither forward nor back may be chosen before that is known.
    pub uncertain: bool,
}

impl PlacementError {
    /// Something was looked at or done, and the answer is no.
    pub fn refused(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), blame: Blame::Caller, class: Class::Refused, uncertain: false }
    }

    /// The document does not say what is needed.
    pub fn config(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), blame: Blame::Caller, class: Class::Config, uncertain: false }
    }

    /// A service or a host did not do what it was told.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), blame: Blame::Service, class: Class::Unknown, uncertain: false }
    }

    /// The same failure with more to say.
    #[must_use]
    pub fn saying(self, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), ..self }
    }

    /// The same failure, of a write whose end is not known.
    #[must_use]
    pub fn uncertain(self) -> Self {
        Self { uncertain: true, ..self }
    }

    /// Another failure, with its sentence, blame and class.
    pub fn of(error: &impl Faulty) -> Self {
        Self { sentence: error.to_string(), blame: error.blame(), class: error.class(), uncertain: false }
    }
}

impl Faulty for PlacementError {
    fn blame(&self) -> Blame {
        self.blame
    }

    fn class(&self) -> Class {
        self.class
    }
}
