//! A certificate that can be shown: its chain, its key, and a rustls configuration of its own, so that a session begun
//! under one certificate is never resumed under another.
use super::names::CertNames;
use super::x509::{self, Facts};
use jiff::Timestamp;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, CipherSuite, ServerConfig};

/// A loaded certificate.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) config: Arc<ServerConfig>,
    pub(super) names: Arc<CertNames>,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Identity {
    /// Checks that the key belongs to the first certificate. The error is what is wrong, as the rest of a sentence.
    pub(super) fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, String> {
        let first = chain.first().ok_or("it holds no certificate")?;
        let Facts { names, not_before, not_after, .. } = x509::facts(first)?;
        let provider = Arc::new(provider());
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => "the private key does not belong to the certificate".to_owned(),
            error => error.to_string(),
        })?;
        let config = server_config(provider, certified).map_err(|error| error.to_string())?;
        Ok(Self { config: Arc::new(config), names: Arc::new(names), not_before, not_after })
    }

    /// Whether it holds at `now`.
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        self.not_before <= now && now < self.not_after
    }
}

/// The order of its suites is kept against the client's. AES-128 is first: its key schedule hashes with SHA-256, which
/// processors have instructions for, while AES-256 takes a tenth of a handshake for SHA-384.
fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| !matches!(suite.suite(), CipherSuite::TLS13_AES_128_GCM_SHA256));
    provider
}

fn server_config(provider: Arc<CryptoProvider>, certified: CertifiedKey) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.ignore_client_order = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    Ok(config)
}
