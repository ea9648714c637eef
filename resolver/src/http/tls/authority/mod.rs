//! A certificate authority of this person's own, for local names only: what `stado tls init` makes, and what the daemon
//! makes certificates with.
//!
//! The authority is constrained (RFC 5280 §4.2.1.10) to [`DOMAINS`] and loopback addresses, so that whoever steals its key
//! cannot pretend to be any other place, and it cannot make authorities below itself.

mod create;
mod files;
mod leaf;
mod shelf;

pub use create::create;
pub use files::{AuthorityFacts, CERT, KEY, read};
#[cfg(test)]
pub(super) use leaf::issue_anything;
pub use leaf::{Issued, issue};
pub(super) use shelf::AuthorityShelf;

use std::net::IpAddr;

/// The authority makes certificates for these names and all below them: both are reserved for use on one machine
/// (RFC 6761), so that no public name is among them.
pub const DOMAINS: [&str; 2] = ["localhost", "test"];

/// Whether the authority may vouch for `host`: a name below [`DOMAINS`], or a loopback address.
pub fn is_local(host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        return address.is_loopback();
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    DOMAINS.into_iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost", "a.localhost", "A.B.TEST", "a.test.", "127.0.0.1", "127.1.2.3", "::1"] {
            assert!(is_local(local), "{local}");
        }
        for public in ["example.com", "localhost.example.com", "notlocalhost", "latest", "10.0.0.1", "192.168.1.1", ""]
        {
            assert!(!is_local(public), "{public}");
        }
    }
}
