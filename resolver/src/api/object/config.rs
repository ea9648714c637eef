//! What an object API is started from. Values only: files and environments belong to the command line.
use super::{Access, Namespace, Objects, Served, Verifying};
use crate::api::Security;
use crate::http::tls::PairFiles;
use stado_fleet::store::history::Writer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One object API.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; beyond loopback only with `tls`.
    pub bind: SocketAddr,
    /// The directory that is served: this host's local store.
    pub root: PathBuf,
    /// Who writes the registry through it, for its history.
    pub writer: Writer,
    /// By name.
    pub namespaces: BTreeMap<String, Namespace>,
    /// What reads their tokens, where a vault keeps them.
    pub verifying: Option<Verifying>,
    /// A certificate and its key.
    pub tls: Option<PairFiles>,
    /// `dashboard.trust_https_proxy`.
    pub trust_proxy: bool,
}

impl Config {
    /// Reads the certificate, opens the directory. Blocks.
    ///
    /// # Errors
    /// A sentence: a pair that does not load, an address that needs one, a directory that cannot be opened, namespaces that
    /// contradict each other.
    pub fn served(&self) -> Result<Served, String> {
        let security = match &self.tls {
            Some(files) => Security::tls(files.clone()).map_err(|e| e.to_string())?,
            None => Security::plain(),
        };
        security.check("the object API", self.bind).map_err(|e| e.to_string())?;
        let access = Access::new(self.namespaces.clone(), self.verifying.clone())?;
        let objects = Objects::open(&self.root).map_err(|e| e.sentence)?.written_by(self.writer.clone());
        Ok(Served { objects, access, security, trust_proxy: self.trust_proxy })
    }

    /// Where it is asked.
    pub fn url(&self, bind: SocketAddr) -> String {
        format!("{}://{bind}", if self.tls.is_some() { "https" } else { "http" })
    }
}
