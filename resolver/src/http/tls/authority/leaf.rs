//! A certificate for one name.
use super::create::time;
use super::files::{self, Signer};
use super::is_local;
use crate::http::tls::LoadError;
use crate::http::tls::identity::Identity;
use jiff::{SignedDuration, Timestamp};
use rcgen::{Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use std::net::IpAddr;
use std::path::Path;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Thirty days: they live in memory only and cost less than a millisecond.
pub(super) const LIFE: SignedDuration = SignedDuration::from_hours(24 * 30);
/// One is made anew when less is left.
pub(super) const LEFT: SignedDuration = SignedDuration::from_hours(24 * 10);
const BACK: SignedDuration = SignedDuration::from_hours(1);

/// Makes a certificate for `host`, to be shown. An address comes with `localhost` and both loopback literals: whoever
/// names no host means this machine.
pub(super) fn make(signer: &Signer, host: &str, now: Timestamp) -> Result<Identity, String> {
    let (leaf, key, _) = sign(signer, host, now, LIFE).map_err(|error| error.to_string())?;
    let chain = vec![leaf.der().clone(), CertificateDer::from(signer.facts.der.clone())];
    Identity::new(chain, PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// A certificate for one name with its key, for a program that cannot ask the daemon.
#[derive(Clone)]
pub struct Issued {
    /// The certificate and its authority's, in PEM.
    pub chain: String,
    /// The private key, in PEM.
    pub key: String,
    /// Until when it holds.
    pub not_after: Timestamp,
}

/// Makes a certificate for a local name with the authority of `folder`, that holds for `life`.
pub fn issue(folder: &Path, host: &str, now: Timestamp, life: SignedDuration) -> Result<Issued, LoadError> {
    let fail = |why: String| LoadError::new(folder, why);
    if !is_local(host) {
        return Err(fail(format!(
            "{host} is no local name: the authority may vouch for localhost, *.localhost, *.test and \
                                 loopback addresses only"
        )));
    }
    let signer = files::open(folder)?.ok_or_else(|| fail("there is no local authority: `stado tls init`".into()))?;
    let (leaf, key, not_after) = sign(&signer, host, now, life).map_err(|error| fail(error.to_string()))?;
    Ok(Issued { chain: leaf.pem() + &signer.facts.pem, key: key.serialize_pem(), not_after })
}

/// Signs; the certificate never holds outside its authority's own time.
pub(super) fn sign(
    signer: &Signer,
    host: &str,
    now: Timestamp,
    life: SignedDuration,
) -> Result<(Certificate, KeyPair, Timestamp), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(subjects(host))?;
    let not_after = (now + life).min(signer.facts.not_after);
    params.not_before = time((now - BACK).max(signer.facts.not_before))?;
    params.not_after = time(not_after)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    if host.len() <= 64 {
        params.distinguished_name.push(DnType::CommonName, host);
    }
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok((params.signed_by(&key, &signer.issuer)?, key, not_after))
}

fn subjects(host: &str) -> Vec<String> {
    if host.parse::<IpAddr>().is_err() {
        return vec![host.to_owned()];
    }
    let mut all = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    if !all.iter().any(|known| known == host) {
        all.push(host.to_owned());
    }
    all
}

/// A pair of files for a name that the authority would refuse, signed all the same.
#[cfg(test)]
pub(in crate::http::tls) fn issue_anything(folder: &Path, host: &str) -> crate::http::tls::PairFiles {
    let signer = files::open(folder).unwrap().unwrap();
    let (leaf, key, _) = sign(&signer, host, Timestamp::now(), LIFE).unwrap();
    let files = crate::http::tls::PairFiles { cert: folder.join("any.pem"), key: folder.join("any-key.pem") };
    std::fs::write(&files.cert, leaf.pem() + &signer.facts.pem).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}
