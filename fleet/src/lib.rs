//! What exists in a Stado fleet, who may use it, where it runs, and how to reach it.
//!
//! This crate knows no listener. Each module uses only those before it in this order, which a test holds to:
//! name, fault, wire, disk, czekam, document, validate, directory, admit, edit, last_good, forwards, ledger, store, vault,
//! link, authority, join, placement.
//!
//! Without the feature `full` only [`name`], [`fault`] and [`wire`] are built.

pub mod fault;
pub mod name;
pub mod wire;

#[cfg(feature = "full")]
pub mod admit;
#[cfg(feature = "full")]
pub mod authority;
#[cfg(feature = "full")]
pub mod czekam;
#[cfg(feature = "full")]
pub mod directory;
#[cfg(feature = "full")]
pub mod disk;
#[cfg(feature = "full")]
pub mod document;
#[cfg(feature = "full")]
pub mod edit;
#[cfg(feature = "full")]
pub mod forwards;
#[cfg(feature = "full")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "full")]
pub mod join;
#[cfg(feature = "full")]
pub mod last_good;
#[cfg(feature = "full")]
pub mod ledger;
#[cfg(feature = "full")]
pub mod link;
#[cfg(feature = "full")]
pub mod placement;
#[cfg(feature = "full")]
pub mod store;
#[cfg(feature = "full")]
pub mod validate;
#[cfg(feature = "full")]
pub mod vault;

#[cfg(test)]
#[cfg(feature = "full")]
mod fixture;
#[cfg(test)]
#[cfg(feature = "full")]
mod layers;
#[cfg(test)]
#[cfg(feature = "full")]
mod testing;
