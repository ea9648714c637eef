//! Why a link operation failed: stage, class, sentence.
use crate::fault::{Blame, Class, Faulty, Hop};

/// Opening of the sentence of a call that no path answered (fleet contract §4.5).
const NO_PATH: &str = "no registry SSH connection path answered (";

/// Why a link operation failed. `Display` is the whole sentence of fleet contract §4.5.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{sentence}")]
pub struct LinkError {
    /// Stage it failed in.
    pub stage: Stage,
    /// The whole sentence.
    pub sentence: String,
    /// Class.
    pub class: Class,
}

/// Stage of a link operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Name or TCP.
    Connect,
    /// The host's identification line.
    Banner,
    /// Key exchange.
    Handshake,
    /// Host key.
    HostKey,
    /// Authentication.
    Auth,
    /// Channel open refused or unanswered (the session is healthy).
    Open,
    /// The far end was asked for the service and did not reach it (session and channels are healthy).
    Service,
    /// Running a command.
    Exec,
    /// A command answered more than the caller allowed.
    Limit,
}

impl LinkError {
    /// One failure of one stage.
    pub fn new(stage: Stage, class: Class, sentence: impl Into<String>) -> Self {
        Self { stage, class, sentence: sentence.into() }
    }

    /// Where on the way to a service that is.
    pub fn hop(&self) -> Hop {
        match self.stage {
            Stage::Open => Hop::Channel,
            Stage::Service => Hop::Service,
            _ => Hop::Session,
        }
    }

    /// `<path>: <cause>; …` when no path answered, else the whole sentence: what other sentences of the contract put
    /// into their own brackets (`no registry authority SSH connection path answered (…)`).
    pub fn causes(&self) -> &str {
        self.sentence.strip_prefix(NO_PATH).and_then(|rest| rest.strip_suffix(')')).unwrap_or(&self.sentence)
    }

    /// The failures of all declared paths as one. Refused keys count only when nothing else went wrong: a path that
    /// was down may be back on the next attempt.
    pub(super) fn no_path(failures: Vec<(String, LinkError)>) -> Self {
        let Some((_, first)) = failures.first() else {
            return Self::new(Stage::Connect, Class::Config, format!("{NO_PATH}none is declared)"));
        };
        let class = if failures.iter().all(|(_, e)| e.class == first.class) { first.class } else { Class::InfraDown };
        let stage = failures.iter().map(|(_, e)| e.stage).max().unwrap_or(Stage::Connect);
        let causes: Vec<String> = failures.iter().map(|(path, e)| format!("{path}: {e}")).collect();
        Self::new(stage, class, format!("{NO_PATH}{})", causes.join("; ")))
    }
}

impl Faulty for LinkError {
    fn blame(&self) -> Blame {
        match (self.stage, self.class) {
            (Stage::HostKey | Stage::Auth, _) | (_, Class::Auth) => Blame::Credentials,
            (Stage::Service, _) => Blame::Service,
            (_, Class::Config) => Blame::ThisHost,
            _ => Blame::Remote,
        }
    }
    fn class(&self) -> Class {
        self.class
    }
}

/// `10s`, `1.5s`: a duration as the sentences write it.
pub(super) fn seconds(duration: std::time::Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_causes_fit_into_another_sentence() {
        let down = LinkError::new(Stage::Connect, Class::InfraDown, "connect to 192.0.2.1:22: refused");
        let error = LinkError::no_path(vec![("primary".into(), down.clone()), ("lan".into(), down)]);
        assert_eq!(
            error.to_string(),
            "no registry SSH connection path answered (primary: connect to 192.0.2.1:22: refused; lan: connect to 192.0.2.1:22: refused)"
        );
        assert!(error.causes().starts_with("primary: connect") && error.causes().ends_with("refused"));
    }

    #[test]
    fn each_stage_is_a_hop_of_the_way() {
        let hop = |stage| LinkError::new(stage, Class::InfraDown, "").hop();
        for stage in [Stage::Connect, Stage::Banner, Stage::Handshake, Stage::HostKey, Stage::Auth, Stage::Exec] {
            assert_eq!(hop(stage), Hop::Session, "{stage:?}");
        }
        assert_eq!((hop(Stage::Open), hop(Stage::Service)), (Hop::Channel, Hop::Service));
    }

    #[test]
    fn a_path_that_was_down_outweighs_a_refused_key() {
        let down = LinkError::new(Stage::Connect, Class::InfraDown, "down");
        let key = LinkError::new(Stage::Auth, Class::Auth, "refused key");
        let mixed = LinkError::no_path(vec![("primary".into(), key.clone()), ("lan".into(), down)]);
        assert_eq!((mixed.class, mixed.stage), (Class::InfraDown, Stage::Auth));
        assert_eq!(LinkError::no_path(vec![("primary".into(), key)]).class, Class::Auth);
    }
}
