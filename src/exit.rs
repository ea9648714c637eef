//! One error, one exit table (design, rule 8).
use stado_fleet::fault::{Blame, Class, Faulty};

/// How a verb ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: exit 0.
    Done,
    /// The answer, already printed, is no: exit 1 and no error line.
    No,
    /// A program that was run ended with this code, which is passed on.
    Child(u8),
}

/// Why a verb failed: the sentence, whose fault it is, and of which class. Any [`Faulty`] error becomes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Sentence for people.
    pub message: String,
    /// Who has to act.
    pub blame: Blame,
    /// Decides the exit code.
    pub class: Class,
    /// Whether the same command may succeed later as it stands.
    pub retry_helps: bool,
}

/// What every verb returns.
pub type Verb = Result<Outcome, Failure>;

impl Failure {
    /// A failure of any class.
    pub fn new(class: Class, blame: Blame, message: impl Into<String>) -> Self {
        Self { message: message.into(), blame, class, retry_helps: class.retry_helps() }
    }
    /// The same, of something that others bring to an end: the command is worth another try as it stands.
    #[must_use]
    pub fn until_it_ends(self) -> Self {
        Self { retry_helps: true, ..self }
    }
    /// The command line is wrong: exit 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Class::Usage, Blame::Caller, message)
    }
    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Class::NotFound, Blame::Caller, message)
    }
    /// This host's configuration, or a document, is wrong.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Class::Config, Blame::ThisHost, message)
    }
    /// Something else failed on this host.
    pub fn here(message: impl Into<String>) -> Self {
        Self::new(Class::Unknown, Blame::ThisHost, message)
    }
    /// The other side understood and refused.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Class::Refused, Blame::Caller, message)
    }
}

impl<E: Faulty> From<E> for Failure {
    fn from(error: E) -> Self {
        let (blame, class, retry_helps) = (error.blame(), error.class(), error.retry_helps());
        Self { message: error.to_string(), blame, class, retry_helps }
    }
}

/// Whose exit codes are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// `stado`: 0, 1, 2, 69, 75.
    Stado,
    /// `devmesh` and `devmeshd`: 0 and 1.
    Devmesh,
}

/// Unavailable, try later.
pub const UNAVAILABLE: u8 = 69;
/// The registry moved, and nothing else.
pub const MOVED: u8 = 75;

/// The table.
pub fn code(voice: Voice, result: &Verb) -> u8 {
    match (voice, result) {
        (_, Ok(Outcome::Done)) => 0,
        (_, Ok(Outcome::No)) => 1,
        (_, Ok(Outcome::Child(code))) => *code,
        (Voice::Devmesh, Err(_)) => 1,
        (Voice::Stado, Err(failure)) => match failure.class {
            Class::Usage => 2,
            Class::RateLimit | Class::Timeout | Class::InfraDown => UNAVAILABLE,
            Class::Moved => MOVED,
            Class::Config | Class::Auth | Class::NotFound | Class::Refused | Class::Unknown => 1,
        },
    }
}

/// The classification line of fleet contract §6, under the error.
pub fn classification(failure: &Failure) -> String {
    let summary = match failure.class {
        Class::Config => "configuration or document is wrong",
        Class::Auth => "not allowed",
        Class::NotFound => "not found",
        Class::RateLimit => "told to slow down",
        Class::Timeout => "no answer in time",
        Class::InfraDown => "something that is needed does not answer",
        Class::Refused => "refused",
        Class::Moved => "the registry moved",
        Class::Usage => "the command line is wrong",
        Class::Unknown => "failed",
    };
    let blame = match failure.blame {
        Blame::Caller | Blame::Credentials => "your request or credentials",
        Blame::ThisHost | Blame::Remote | Blame::Service | Blame::Stado => "our failure",
    };
    let retry = if failure.retry_helps { "retry later" } else { "retrying will not help" };
    format!("{summary} — {blame} [{}]; {retry}", failure.class.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(class: Class) -> (u8, u8) {
        let failure = || Err(Failure::new(class, Blame::ThisHost, "x"));
        (code(Voice::Stado, &failure()), code(Voice::Devmesh, &failure()))
    }

    #[test]
    fn one_table() {
        assert_eq!(code(Voice::Stado, &Ok(Outcome::Done)), 0);
        assert_eq!(code(Voice::Stado, &Ok(Outcome::No)), 1);
        assert_eq!(code(Voice::Stado, &Ok(Outcome::Child(7))), 7);
        for class in [Class::Config, Class::Auth, Class::NotFound, Class::Refused, Class::Unknown] {
            assert_eq!(both(class), (1, 1), "{class:?}");
        }
        for class in [Class::RateLimit, Class::Timeout, Class::InfraDown] {
            assert_eq!(both(class), (69, 1), "{class:?}");
        }
        assert_eq!(both(Class::Moved), (75, 1));
        assert_eq!(both(Class::Usage), (2, 1));
    }

    #[test]
    fn the_second_line_says_whose_fault_and_whether_to_retry() {
        let line = classification(&Failure::new(Class::InfraDown, Blame::Remote, "x"));
        assert!(line.ends_with("— our failure [infra_down]; retry later"), "{line}");
        let line = classification(&Failure::usage("x"));
        assert!(line.ends_with("— your request or credentials [refused]; retrying will not help"), "{line}");
        let line = classification(&Failure::refused("another one is at work").until_it_ends());
        assert!(line.ends_with("[refused]; retry later"), "{line}");
    }

    #[test]
    fn what_the_client_library_calls_worth_another_try_is_worth_one_here() {
        let api = |status, code: &str| {
            let error = crate::client::Error::Api { status, code: code.into(), message: "x".into() };
            classification(&error.into())
        };
        for line in [api(404, "service_not_found"), api(409, "name_conflict"), api(503, "port_exhausted")] {
            assert!(line.ends_with("; retry later"), "{line}");
        }
        assert!(api(400, "invalid_name").ends_with("; retrying will not help"));
    }
}
