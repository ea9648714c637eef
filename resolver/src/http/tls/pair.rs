//! One pair of files for a listener of its own, which speaks HTTP/1.1 and has no names to choose by.
use super::shelf::Shelf;
use super::{LoadError, PairFiles};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A certificate with its key, kept current: read again when a file changed, the old one kept if the new one does not load.
#[derive(Debug)]
pub struct Pair(Shelf);

impl Pair {
    /// Reads it.
    ///
    /// # Errors
    /// A pair that does not load.
    pub fn load(files: PairFiles) -> Result<Self, LoadError> {
        Shelf::load(files).map(Self)
    }

    /// For the next connection. Looks at the files: blocks for as long as that takes.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.refresh();
        let mut config = self.0.identity()?.config.as_ref().clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(TlsAcceptor::from(Arc::new(config)))
    }
}
