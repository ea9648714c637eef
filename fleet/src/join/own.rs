//! What a host keeps of itself while it joins and afterwards: `~/.stado/config.json`, and a join that is not done.
use crate::disk;
use crate::name::{SshDestination, TargetName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 1 << 20;

/// `~/.stado/config.json`, changed key by key: what a person wrote there stays.
#[derive(Debug, Clone)]
pub struct OwnConfig {
    file: PathBuf,
}

impl OwnConfig {
    /// In `~/.stado`.
    pub fn new(stado_home: &Path) -> Self {
        Self { file: stado_home.join("config.json") }
    }

    /// Changes it; written only when something did change.
    ///
    /// # Errors
    /// A file that cannot be read or written, or holds no JSON object, as a sentence.
    pub fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<bool, String> {
        let bytes = disk::read(&self.file, LARGEST).map_err(|e| e.to_string())?;
        let before: Map<String, Value> = match bytes.as_deref() {
            None => Map::new(),
            Some(bytes) => serde_json::from_slice(bytes)
                .map_err(|e| format!("{} holds no JSON object: {e}", self.file.display()))?,
        };
        let mut next = before.clone();
        change(&mut next);
        if next == before {
            return Ok(false);
        }
        let text = format!("{:#}\n", Value::Object(next));
        // A linked configuration stays linked: what is behind it is replaced.
        let file = std::fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        disk::replace(&file, text.as_bytes()).map_err(|e| e.to_string())?;
        Ok(true)
    }

    /// Says who this host is, and by which door others come in when they can.
    ///
    /// # Errors
    /// As [`OwnConfig::change`].
    pub fn name(&self, target: &TargetName, door: Option<&Door>) -> Result<bool, String> {
        self.change(|own| {
            own.insert("target".into(), target.as_str().into());
            let (section, key, value) = match door {
                None => return,
                Some(Door::Gate(bind)) => ("gate", "bind", bind.to_string()),
                Some(Door::Sshd(file)) => ("sshd", "authorized_keys", file.display().to_string()),
            };
            let section = own.entry(section).or_insert_with(|| Value::Object(Map::new()));
            if let Some(section) = section.as_object_mut() {
                section.insert(key.into(), value.into());
            }
        })
    }
}

/// By which door others come in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    /// The gate, which listens there.
    Gate(SocketAddr),
    /// The machine's sshd, with lines of ours in this authorized_keys file.
    Sshd(PathBuf),
}

/// A join that was begun: what a second run needs, so that nobody has to paste again. It holds the invitation and is removed
/// at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// The text of the invitation.
    pub invitation: String,
    /// The name that this host wants.
    pub name: TargetName,
    /// Where others reach it.
    #[serde(default)]
    pub address: Option<String>,
    /// By which door.
    #[serde(default)]
    pub door: Option<Door>,
}

impl Pending {
    /// `~/.stado/joining.json`
    pub fn file(stado_home: &Path) -> PathBuf {
        stado_home.join("joining.json")
    }

    /// The one that was not brought to its end.
    ///
    /// # Errors
    /// A file that cannot be read, as a sentence; one that holds something else counts as none.
    pub fn read(stado_home: &Path) -> Result<Option<Self>, String> {
        let bytes = disk::read(&Self::file(stado_home), LARGEST).map_err(|e| e.to_string())?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, stado_home: &Path) -> Result<(), String> {
        let bytes = serde_json::to_vec(self).map_err(|e| e.to_string())?;
        disk::replace(&Self::file(stado_home), &bytes).map_err(|e| e.to_string())
    }

    /// The address, parsed.
    pub(super) fn destination(&self) -> Option<SshDestination> {
        self.address.as_deref().and_then(|address| address.parse().ok())
    }
}
