//! PEM files → an [`Identity`].
use super::PairFiles;
use super::identity::Identity;
use stado_fleet::disk;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::path::{Path, PathBuf};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// No certificate file is larger.
pub(super) const LARGEST: u64 = 1 << 20;

/// A certificate or key that cannot be used: which file, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("load TLS certificate/key: {path}: {why}", path = path.display())]
pub struct LoadError {
    /// The file that is at fault.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub why: String,
}
impl LoadError {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into() }
    }
}
impl Faulty for LoadError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        Class::Config
    }
}

/// Reads both files and checks that they belong together.
pub(super) fn load(files: &PairFiles) -> Result<Identity, LoadError> {
    let chain = chain(&files.cert)?;
    let key = key(&files.key)?;
    Identity::new(chain, key)
        .map_err(|why| LoadError::new(&files.cert, format!("{why} (key: {})", files.key.display())))
}

/// The certificates of a file, in its order.
pub(super) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let bytes = bytes(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(LoadError::new(path, "it holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")),
        Err(error) => Err(LoadError::new(path, format!("it is not PEM: {error}"))),
    }
}

/// The first private key of a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, LoadError> {
    let bytes = bytes(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        let encrypted = bytes.windows(9).any(|at| at == b"ENCRYPTED");
        LoadError::new(
            path,
            if encrypted {
                "the private key is encrypted, and nobody is there to type its password: write it without one \
             (openssl pkey -in KEY -out PLAIN)"
            } else {
                "it holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"
            },
        )
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    match disk::read(path, LARGEST) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(LoadError::new(path, "no such file")),
        Err(error) => Err(LoadError::new(path, error.source.to_string())),
    }
}
