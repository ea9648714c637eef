//! A vault by the interface of fleet contract §7.2: [`Broker`] asks one, and [`Vault`] is a small one of our own, a file that
//! is encrypted as a whole.
//!
//! A [`Vault`] is a directory: `vault.json` ([`sealed`]: a head in clear, everything else encrypted), its key where
//! [`keyring`] keeps it, and `audit.log`. [`contents`] is what is inside, and who may read what of it. Nothing here listens.
mod asking;
mod audit;
mod broker;
pub mod contents;
mod error;
mod keyring;
mod open;
mod sealed;
mod secret;
#[cfg(test)]
mod tests;

pub use audit::Event;
pub use broker::{Broker, BrokerConfig};
pub use contents::{Contents, Item, ItemFacts, Refused};
pub use error::VaultError;
pub use keyring::{KeyPlace, Wanted};
pub use open::{Vault, given};
pub use secret::Secret;
