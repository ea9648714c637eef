//! Where a vault's key is: in the person's keyring (the Secret Service, by `secret-tool`), or in a file that only its owner can
//! read. The key is never an argument of a process.
use super::{VaultError, asking};
use crate::disk;
use crate::fault::Class;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BYTES: usize = 32;
/// The program that speaks with the keyring, and what says that it is a vault's key.
const TOOL: &str = "secret-tool";
const SERVICE: &str = "stado-vault";
/// How long it may take: a keyring that is locked asks its person first.
const ANSWER: Duration = Duration::from_secs(60);

/// Whether an answer is still wanted. Looked at while the keyring is asked: what is not wanted any more is ended.
pub type Wanted<'a> = &'a dyn Fn() -> bool;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPlace {
    /// `key` beside the vault, owner-only.
    File,
    /// The person's keyring.
    Keyring,
}

impl KeyPlace {
    /// As people find it.
    pub fn shown(self, vault: &Path) -> String {
        match self {
            Self::File => file(vault).display().to_string(),
            Self::Keyring => "the keyring of this login session".into(),
        }
    }
}

/// A key of 256 bits.
#[derive(Clone)]
pub(super) struct Key([u8; BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub(super) fn random() -> Result<Self, VaultError> {
        let mut bytes = [0; BYTES];
        let filled = aws_lc_rs::rand::fill(&mut bytes);
        filled.map_err(|_| VaultError::new(Class::Unknown, "the system gives no random bytes"))?;
        Ok(Self(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        hex::decode(text.trim()).ok()?.try_into().ok().map(Self)
    }
}

/// The key's file of a vault.
fn file(vault: &Path) -> PathBuf {
    vault.with_file_name("key")
}

/// Puts a new key where `place` says.
pub(super) fn store(place: KeyPlace, vault: &Path, id: &str, key: &Key, wanted: Wanted<'_>) -> Result<(), VaultError> {
    let text = hex::encode(key.bytes());
    match place {
        KeyPlace::File => {
            let path = file(vault);
            if disk::create_new(&path, text.as_bytes())? {
                return Ok(());
            }
            let sentence = format!("{} is there already: move it away if its vault is gone", path.display());
            Err(VaultError::new(Class::Refused, sentence))
        }
        KeyPlace::Keyring => {
            let label = format!("--label=Stado vault {id}");
            tool(&["store", &label, "service", SERVICE, "vault", id], &text, wanted).map(|_| ())
        }
    }
}

/// The key of a vault.
pub(super) fn load(place: KeyPlace, vault: &Path, id: &str, wanted: Wanted<'_>) -> Result<Key, VaultError> {
    let text = match place {
        KeyPlace::File => from_file(&file(vault))?,
        KeyPlace::Keyring => tool(&["lookup", "service", SERVICE, "vault", id], "", wanted)?,
    };
    Key::parse(&text)
        .ok_or_else(|| VaultError::new(Class::Config, format!("{} holds no key of a vault", place.shown(vault))))
}

fn from_file(path: &Path) -> Result<String, VaultError> {
    crate::store::object::token::read_as("the vault's key file", path, |place| {
        format!("the vault's key file {place} must be readable by its owner alone (chmod 600)")
    })
    .map_err(|e| VaultError::new(Class::Config, e))
}

/// Whether there is a keyring that gives back what is put into it.
pub(super) fn keyring_works(id: &str, wanted: Wanted<'_>) -> Result<(), VaultError> {
    let probe = format!("probe-{id}");
    let about = ["service", SERVICE, "vault", &probe];
    tool(&[&["store", "--label=Stado vault probe"], about.as_slice()].concat(), "probe", wanted)?;
    let found = tool(&[&["lookup"], about.as_slice()].concat(), "", wanted);
    // What is left of it is harmless.
    let _ = tool(&[&["clear"], about.as_slice()].concat(), "", wanted);
    match found?.trim() {
        "probe" => Ok(()),
        _ => Err(VaultError::new(Class::Config, "the keyring does not give back what is put into it")),
    }
}

/// Runs the tool; what is secret goes through its standard input and output.
fn tool(args: &[&str], input: &str, wanted: Wanted<'_>) -> Result<String, VaultError> {
    let told = |class: Class, why: &str| {
        let sentence = format!(
            "the keyring cannot be used: {why}; log in to a session that has one, or keep the key in a file (`stado vault \
             init --key file`)"
        );
        VaultError::new(class, sentence)
    };
    let fail = |why: &str| told(Class::Config, why);
    let mut command = Command::new(TOOL);
    command.args(args);
    let said = asking::ask(&mut command, input, ANSWER, wanted).map_err(|e| told(e.class, &e.sentence))?;
    if !said.status.success() {
        let said = String::from_utf8_lossy(&said.stderr);
        let said = said.lines().next().unwrap_or("it has no such key").trim();
        return Err(fail(if said.is_empty() { "it has no such key" } else { said }));
    }
    String::from_utf8(said.stdout).map_err(|_| fail("its answer is no text"))
}
