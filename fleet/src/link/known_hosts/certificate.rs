//! Whether a host certificate, signed by a known authority, vouches for a host now.
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::ssh_key::{Algorithm, Certificate, HashAlg};

/// Checks type, signature, validity, principals and critical options (OpenSSH's PROTOCOL.certkeys). `host` is
/// lowercase, without a port; `now` in seconds since 1970.
pub(super) fn check(certificate: &Certificate, host: &str, now: u64) -> Result<(), String> {
    if certificate.cert_type() != CertType::Host {
        return Err("it is not a host certificate".into());
    }
    if matches!(certificate.signature().algorithm(), Algorithm::Rsa { hash: None }) {
        return Err("its authority signed it with SHA-1".into());
    }
    if now < certificate.valid_after() {
        return Err("it is not yet valid; is this host's clock right?".into());
    }
    if now >= certificate.valid_before() {
        return Err("it has expired".into());
    }
    let principals = certificate.valid_principals();
    if !principals.is_empty() && !principals.iter().any(|p| p == host) {
        return Err(format!("it is for {}, not for {host}", principals.join(", ")));
    }
    if let Some((option, _)) = certificate.critical_options().iter().next() {
        return Err(format!("it has the critical option {option}, which no host certificate may have"));
    }
    let authority = certificate.signature_key().fingerprint(HashAlg::Sha256);
    certificate.validate_at(now, [&authority]).map_err(|_| "the signature of its authority does not verify".to_owned())
}
