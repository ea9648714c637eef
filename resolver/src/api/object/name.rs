//! Names of objects and where they are kept.

/// A namespace whose objects are written once and read by anyone.
pub(super) const RELEASES: &str = "releases";

/// `stado://<namespace>/<key>`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) namespace: String,
    pub(super) key: String,
}

impl Name {
    /// The grammar is that of the client (`fleet`); the parts are taken apart here.
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let checked = stado_fleet::store::object::ObjectName::parse(uri).ok()?;
        let (namespace, key) = checked.as_str().strip_prefix("stado://")?.split_once('/')?;
        Some(Self { namespace: namespace.to_owned(), key: key.to_owned() })
    }

    /// Below the root: `ecosystem/<namespace>/<key>`.
    pub(super) fn path(&self) -> String {
        format!("ecosystem/{}/{}", self.namespace, self.key)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stado://{}/{}", self.namespace, self.key)
    }
}
