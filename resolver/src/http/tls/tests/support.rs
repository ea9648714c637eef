//! Certificates made for a test, a listener that says what was agreed, and a client that shows what it was shown.
use crate::http::tls::{Alpn, PairFiles, Tls, TlsSettings, backend};
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A self-made pair that holds now.
pub(in crate::http) fn pair(dir: &Path, stem: &str, names: &[&str]) -> PairFiles {
    let now = Timestamp::now();
    pair_between(dir, stem, names, now - SignedDuration::from_hours(1), now + SignedDuration::from_hours(1))
}

pub(super) fn pair_between(dir: &Path, stem: &str, names: &[&str], from: Timestamp, until: Timestamp) -> PairFiles {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = time::OffsetDateTime::from_unix_timestamp(from.as_second()).unwrap();
    params.not_after = time::OffsetDateTime::from_unix_timestamp(until.as_second()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let files = PairFiles { cert: dir.join(format!("{stem}.pem")), key: dir.join(format!("{stem}-key.pem")) };
    // Renamed into place, as certificate tools do.
    for (path, text) in [(&files.key, key.serialize_pem()), (&files.cert, certificate.pem())] {
        stado_fleet::disk::replace(path, text.as_bytes()).unwrap();
    }
    files
}

fn trusting() -> Arc<ClientConfig> {
    Arc::new(backend::trusting(&[&TLS13, &TLS12]).unwrap())
}

/// A running TLS listener.
pub(super) struct Rig {
    pub(super) tls: Arc<Tls>,
    pub(super) addr: SocketAddr,
    problems: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    /// Answers every connection with what was agreed: name, protocol, names of the certificate.
    pub(super) async fn start(settings: TlsSettings) -> Self {
        let tls = Arc::new(Tls::load(settings).unwrap().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let problems = Arc::new(Mutex::new(Vec::new()));
        let (shared, seen) = (tls.clone(), problems.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, seen) = (shared.clone(), seen.clone());
                tokio::spawn(async move {
                    match tls.accept(stream).await {
                        Ok(mut conn) => {
                            let h2 = if conn.alpn == Alpn::H2 { "h2" } else { "h1" };
                            let sni = conn.sni.as_deref().unwrap_or("-");
                            let text = format!("{sni} {h2} {}", conn.covered.list().join(","));
                            conn.stream.write_all(text.as_bytes()).await.unwrap();
                            conn.stream.shutdown().await.unwrap();
                        }
                        Err(problem) => seen.lock().unwrap().push(problem.to_string()),
                    }
                });
            }
        });
        Self { tls, addr, problems }
    }

    pub(super) async fn of(pairs: impl IntoIterator<Item = PairFiles>) -> Self {
        Self::start(TlsSettings { more: pairs.into_iter().collect(), ..TlsSettings::default() }).await
    }

    /// What a client is told: an address as `host` sends no name.
    pub(super) async fn ask(&self, host: &str) -> std::io::Result<String> {
        self.ask_with(host, trusting()).await
    }

    pub(super) async fn ask_with(&self, host: &str, config: Arc<ClientConfig>) -> std::io::Result<String> {
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let tcp = TcpStream::connect(self.addr).await?;
        let mut stream = TlsConnector::from(config).connect(name, tcp).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }

    /// The first certificate that a client is shown.
    pub(super) async fn shown(&self, host: &str) -> CertificateDer<'static> {
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let tcp = TcpStream::connect(self.addr).await.unwrap();
        let config = trusting();
        let stream = TlsConnector::from(config).connect(name, tcp).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    }

    /// Bytes in, bytes out, to the end.
    pub(super) async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut tcp = TcpStream::connect(self.addr).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut answer)).await.unwrap();
        answer
    }

    /// Waits for a connection to end with a problem that says `text`.
    pub(super) async fn problem(&self, text: &str) {
        wait_for(text, async || self.problems.lock().unwrap().iter().any(|problem| problem.contains(text))).await;
    }
}

pub(super) async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(tokio::time::Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
