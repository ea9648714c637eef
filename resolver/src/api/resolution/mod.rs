//! The resolution API on loopback (fleet contract §4.4): one request per connection, `Connection: close`.
//!
//! Its heads are read here and not by an HTTP library, because the contract fixes the answer to a head that is too large
//! or malformed, and because a browser's request must be told by its raw `Host` and `Origin`.
mod answer;
mod request;
mod serve;

pub use answer::{Answer, MetricsText};
pub(crate) use request::is_loopback_authority;
pub use serve::Resolution;

#[cfg(test)]
mod tests;
