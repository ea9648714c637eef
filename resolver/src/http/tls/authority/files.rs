//! The authority's two files.
use crate::http::tls::pem::{self, LARGEST};
use crate::http::tls::{LoadError, x509};
use jiff::Timestamp;
use rcgen::{Issuer, KeyPair};
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// File name of the authority's certificate, which is no secret.
pub const CERT: &str = "ca.pem";
/// File name of its private key.
pub const KEY: &str = "ca-key.pem";

/// What is known about an authority from its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityFacts {
    /// Its certificate in PEM, with a line end.
    pub pem: String,
    /// The same in DER.
    pub der: Vec<u8>,
    /// Its name.
    pub subject: String,
    /// SHA-256 over the DER, in hex.
    pub fingerprint: String,
    /// From when.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
}

/// An authority that can sign.
pub(super) struct Signer {
    pub(super) issuer: Issuer<'static, KeyPair>,
    pub(super) facts: AuthorityFacts,
}

/// The authority of `folder`, `None` where there is none. The key is not needed to read it.
pub fn read(folder: &Path) -> Result<Option<AuthorityFacts>, LoadError> {
    let path = folder.join(CERT);
    let at = |why: String| LoadError::new(&path, why);
    let bytes = match stado_fleet::disk::read(&path, LARGEST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) => return Err(at(error.source.to_string())),
    };
    let der = pem::chain(&path)?.into_iter().next().ok_or_else(|| at("it holds no certificate".into()))?.to_vec();
    let facts = x509::facts(&der).map_err(at)?;
    let pem = String::from_utf8(bytes).map_err(|_| at("it is not text".into()))?;
    Ok(Some(AuthorityFacts {
        pem,
        subject: facts.subject,
        fingerprint: hex::encode(Sha256::digest(&der)),
        not_before: facts.not_before,
        not_after: facts.not_after,
        der,
    }))
}

/// The authority of `folder` with its key; refused when others than this person can read the key.
pub(super) fn open(folder: &Path) -> Result<Option<Signer>, LoadError> {
    let Some(facts) = read(folder)? else { return Ok(None) };
    let path = folder.join(KEY);
    let at = |why: String| LoadError::new(&path, why);
    let mode = std::fs::metadata(&path).map(|meta| meta.permissions().mode()).map_err(|error| at(error.to_string()))?;
    if mode & 0o077 != 0 {
        return Err(at(format!(
            "others than you may read the authority's key (mode {:o}): if nobody has, `chmod 600` it; else `stado tls init \
             --renew`",
            mode & 0o777
        )));
    }
    let der = pem::key(&path)?;
    let key = KeyPair::try_from(&der).map_err(|error| at(error.to_string()))?;
    let certificate = CertificateDer::from(facts.der.clone());
    // The same check as for any pair: the key is this certificate's.
    crate::http::tls::identity::Identity::new(vec![certificate.clone()], der).map_err(at)?;
    let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| at(error.to_string()))?;
    Ok(Some(Signer { issuer, facts }))
}
