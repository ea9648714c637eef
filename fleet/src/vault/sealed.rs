//! A vault's file: a head in clear, which says where the key is, and everything else encrypted (AES-256-GCM, a fresh random
//! nonce for each write, the head authenticated with it).
use super::VaultError;
use super::contents::Contents;
use super::keyring::{Key, KeyPlace};
use crate::fault::Class;
use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::path::Path;

const PRODUCT: &str = "stado-vault";
const SCHEMA: u64 = 1;
const NONCE: usize = 12;

/// What anybody who can read the file learns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    product: String,
    schema_version: u64,
    /// Names this vault to a keyring that has several.
    pub(super) id: String,
    pub(super) key: KeyPlace,
}

/// The file, as it is written.
#[derive(Debug, Serialize)]
struct File<'a> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    body: Body,
}

/// The rest of it. Read apart from the head: flattened numbers are not read back in this build of serde_json.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    nonce: String,
    sealed: String,
}

impl Head {
    pub(super) fn new(id: String, key: KeyPlace) -> Self {
        Self { product: PRODUCT.into(), schema_version: SCHEMA, id, key }
    }

    /// What the encryption vouches for beside the contents.
    fn vouched(&self) -> String {
        format!("{}/{}/{}", self.product, self.schema_version, self.id)
    }

    fn check(&self, path: &Path) -> Result<(), VaultError> {
        let why = match (self.product.as_str(), self.schema_version) {
            (PRODUCT, SCHEMA) => return Ok(()),
            (PRODUCT, version) => {
                format!("is of version {version}, and this build reads version {SCHEMA}: use a newer one")
            }
            _ => "is not a vault of Stado".to_owned(),
        };
        Err(VaultError::new(Class::Config, format!("{} {why}", path.display())))
    }
}

/// The head of a file's bytes.
pub(super) fn head(path: &Path, bytes: &[u8]) -> Result<Head, VaultError> {
    let head: Head = serde_json::from_slice(bytes).map_err(|e| unreadable(path, &e.to_string()))?;
    head.check(path).map(|()| head)
}

pub(super) fn open(path: &Path, bytes: &[u8], key: &Key) -> Result<Contents, VaultError> {
    let head = head(path, bytes)?;
    let body: Body = serde_json::from_slice(bytes).map_err(|e| unreadable(path, &e.to_string()))?;
    let nonce: Option<[u8; NONCE]> = hex::decode(&body.nonce).ok().and_then(|bytes| bytes.try_into().ok());
    let sealed = STANDARD.decode(&body.sealed).ok();
    let (Some(nonce), Some(mut sealed)) = (nonce, sealed) else { return Err(unreadable(path, "it is damaged")) };
    let aad = Aad::from(head.vouched());
    let opened = cipher(key)?.open_in_place(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).map_err(|_| {
        let sentence = format!(
            "the key in {} does not open {}: it is another vault's key, or the file was changed by somebody else",
            head.key.shown(path),
            path.display()
        );
        VaultError::new(Class::Config, sentence)
    })?;
    // What is wrong inside is not quoted: it is secret.
    serde_json::from_slice(opened).map_err(|e| unreadable(path, &format!("its contents end at column {}", e.column())))
}

pub(super) fn seal(head: &Head, contents: &Contents, key: &Key) -> Result<Vec<u8>, VaultError> {
    let failed = || VaultError::new(Class::Unknown, "the vault cannot be encrypted");
    let mut bytes = serde_json::to_vec(contents).map_err(|_| failed())?;
    let aad = Aad::from(head.vouched());
    let nonce = cipher(key)?.seal_in_place_append_tag(aad, &mut bytes).map_err(|_| failed())?;
    let body = Body { nonce: hex::encode(nonce.as_ref()), sealed: STANDARD.encode(&bytes) };
    let file = File { head, body };
    serde_json::to_vec_pretty(&file).map_err(|_| failed())
}

fn cipher(key: &Key) -> Result<RandomizedNonceKey, VaultError> {
    RandomizedNonceKey::new(&AES_256_GCM, key.bytes())
        .map_err(|_| VaultError::new(Class::Unknown, "the vault's key cannot be used"))
}

fn unreadable(path: &Path, why: &str) -> VaultError {
    VaultError::new(Class::Config, format!("the vault {} cannot be read: {why}", path.display()))
}
