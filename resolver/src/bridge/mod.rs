//! Keeps what this host has published true (docs/decisions/bridge.md): a frontend that got another port, a container that asks to
//! be published, a publication that nothing stands behind.
//!
//! [`plan`] says what is to be done, [`reach`] which publisher is gone, and both are pure; [`keeper`] looks at the mesh and at the
//! held directory, and writes.
pub mod keeper;
pub mod plan;
pub mod reach;

/// What this host lets its containers publish (`publish` in `~/.stado/config.json`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether a label may ask for it.
    pub labels: bool,
    /// For whom what a label asks for is; the shared consumer when nobody is named.
    pub consumers: Vec<String>,
}
