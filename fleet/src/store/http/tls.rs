//! TLS to a store: the system's roots, one more where it is configured, and a certificate of this host where one is asked for.
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{AlertDescription, ClientConfig, Error as TlsError, RootCertStore, crypto::aws_lc_rs};

/// How a store is trusted, and how this host shows who it is. Cheap to clone; its files are read once, when they are first
/// needed.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<Files>,
    made: Arc<OnceCell<Made>>,
}

#[derive(Debug)]
struct Files {
    /// `storage.stado`, as settings are called in sentences.
    setting: &'static str,
    ca_file: Option<PathBuf>,
    certificate: Option<(PathBuf, PathBuf)>,
}

struct Made(TlsConnector);

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsConnector")
    }
}

impl Tls {
    /// `setting` is what the settings begin with in sentences (`storage.s3`); `ca_file` holds PEM roots beside those of the
    /// system.
    pub fn new(setting: &'static str, ca_file: Option<PathBuf>) -> Self {
        Self { files: Arc::new(Files { setting, ca_file, certificate: None }), made: Arc::default() }
    }

    /// With a certificate of this host and its key, PEM; the key file has to be owner-only.
    pub fn showing(self, certificate: PathBuf, key: PathBuf) -> Self {
        let Files { setting, ca_file, .. } = &*self.files;
        let files = Files { setting, ca_file: ca_file.clone(), certificate: Some((certificate, key)) };
        Self { files: Arc::new(files), made: Arc::default() }
    }

    /// What a server that ended the connection has against this host's certificate; `None` where it said nothing of it. A
    /// retry with the same files is refused again.
    pub(super) fn refused(&self, error: &(dyn Error + 'static)) -> Option<String> {
        use AlertDescription as A;
        let alert = alert(error)?;
        let of_certificates = [
            A::BadCertificate,
            A::UnsupportedCertificate,
            A::CertificateRevoked,
            A::CertificateExpired,
            A::CertificateUnknown,
            A::CertificateRequired,
            A::UnknownCA,
            A::AccessDenied,
        ];
        if !of_certificates.contains(&alert) {
            return None;
        }
        let setting = self.files.setting;
        Some(match &self.files.certificate {
            Some((certificate, _)) => format!(
                "refused the certificate of this host, {setting}.cert_file {} ({alert:?}): it must be in force, be for client \
                 authentication, and be signed by an authority that the server trusts for its clients; replace it with its key, \
                 or name another one",
                certificate.display()
            ),
            None => format!(
                "asks for a certificate of this host, and {setting} names none ({alert:?}): name one in {setting}.cert_file and \
                 its key in {setting}.key_file"
            ),
        })
    }

    /// The connector. Reading the system's roots takes files, and is done off the runtime's threads.
    pub(super) async fn connector(&self) -> Result<TlsConnector, String> {
        let make = async {
            let files = Arc::clone(&self.files);
            let made = tokio::task::spawn_blocking(move || connector(&files)).await;
            made.map_err(|e| e.to_string())?.map(Made)
        };
        self.made.get_or_try_init(|| make).await.map(|made| made.0.clone())
    }
}

/// The alert of TLS that an error comes from.
fn alert(error: &(dyn Error + 'static)) -> Option<AlertDescription> {
    let mut error = Some(error);
    while let Some(this) = error {
        // What an error of the system wraps is not among its sources.
        let inner = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(TlsError::AlertReceived(alert)) = inner.and_then(|inner| inner.downcast_ref()) {
            return Some(*alert);
        }
        error = this.source();
    }
    None
}

/// The provider is passed explicitly: there is one in the whole program (design, choices).
fn connector(files: &Files) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let unusable =
        |key: &str, path: &Path, e: String| format!("{}.{key} {} cannot be used: {e}", files.setting, path.display());
    if let Some(path) = &files.ca_file {
        extra(&mut roots, path).map_err(|e| unusable("ca_file", path, e))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots);
    let config = match &files.certificate {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate).map_err(|e| unusable("cert_file", certificate, e))?;
            let secret = super::secret::owner_only(&format!("{}.key_file", files.setting), key)?;
            let parsed = PrivateKeyDer::from_pem_slice(secret.as_bytes());
            let parsed = parsed.map_err(|e| unusable("key_file", key, e.to_string()))?;
            config
                .with_client_auth_cert(chain, parsed)
                .map_err(|e| unusable("cert_file", certificate, e.to_string()))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn extra(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())?;
    let found = read.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    if found.is_empty() { Err("it holds no certificate".into()) } else { Ok(found) }
}

/// The name that the certificate has to carry.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(bare).map_err(|e| e.to_string())
}
