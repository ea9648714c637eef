//! TLS to an object API: the system's roots, and one more where it is configured.
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};

/// A connector. The provider is passed explicitly: there is one in the whole program (design, choices).
pub(super) fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        extra(&mut roots, path).map_err(|e| format!("the ca_file {} cannot be used: {e}", path.display()))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn extra(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let mut found = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())? {
        roots.add(certificate.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        found += 1;
    }
    if found == 0 { Err("it holds no certificate".into()) } else { Ok(()) }
}

/// The name that the certificate has to carry.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(bare).map_err(|e| e.to_string())
}
