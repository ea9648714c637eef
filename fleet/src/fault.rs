//! Whose fault an error is and whether a retry may help. Every error type of this workspace answers [`Faulty`];
//! sentences for people and exit codes are made from it at the edge (`src/exit.rs`).

/// Who has to act before the operation can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The request or its input is wrong.
    Caller,
    /// Credentials or permissions.
    Credentials,
    /// This host: its configuration, files, descriptors, ports.
    ThisHost,
    /// The network, or another host that does not answer.
    Remote,
    /// The service behind the route.
    Service,
    /// A defect of Stado.
    Stado,
}

impl Blame {
    /// One word, as the local API says it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Credentials => "credentials",
            Self::ThisHost => "this_host",
            Self::Remote => "remote",
            Self::Service => "service",
            Self::Stado => "stado",
        }
    }
}

/// Where on the way from a client to its service something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hop {
    /// This host: the address that the client connects to has nothing to go on with.
    Adapter,
    /// The SSH session to the service's host, or what should carry one.
    Session,
    /// The channel in a session that stands: refused, or not answered.
    Channel,
    /// The service itself, on its own host.
    Service,
}

impl Hop {
    /// One word, as the published files and `resolver status` say it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Adapter => "adapter",
            Self::Session => "session",
            Self::Channel => "channel",
            Self::Service => "service",
        }
    }
}

/// The class of a failure, as the fleet contract (§6) names it. Decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Configuration or document is wrong (`config`).
    Config,
    /// Not allowed (`auth`).
    Auth,
    /// Named thing does not exist (`not_found`).
    NotFound,
    /// Told to slow down (`rate_limit`).
    RateLimit,
    /// A deadline passed (`timeout`).
    Timeout,
    /// Something that is needed does not answer (`infra_down`).
    InfraDown,
    /// The other side understood and refused (`refused`).
    Refused,
    /// The registry moved between read and write (exit 75).
    Moved,
    /// The command line is wrong (exit 2).
    Usage,
    /// None of these (`unknown`).
    Unknown,
}

impl Class {
    /// The word of the fleet contract §6.
    pub fn code(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::RateLimit => "rate_limit",
            Self::Timeout => "timeout",
            Self::InfraDown => "infra_down",
            // The contract has no words for the last two: their exit codes, 75 and 2, are their own.
            Self::Refused | Self::Moved | Self::Usage => "refused",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the same request may succeed later without anyone changing it.
    pub fn retry_helps(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::InfraDown | Self::Moved)
    }
}

/// An error that knows whose fault it is and of which class.
pub trait Faulty: std::error::Error {
    /// Who has to act.
    fn blame(&self) -> Blame;
    /// Which class of failure; decides the exit code.
    fn class(&self) -> Class;
    /// Whether the same request may succeed later without whoever made it changing it. An error that knows more than its class
    /// says it.
    fn retry_helps(&self) -> bool {
        self.class().retry_helps()
    }
}

impl Faulty for crate::name::NameError {
    fn blame(&self) -> Blame {
        Blame::Caller
    }
    fn class(&self) -> Class {
        Class::Config
    }
}
