//! A value that nobody sees by accident.
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bytes of a token that is made here.
const TOKEN: usize = 32;

/// A secret text. Its `Debug` says nothing, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A new token: 256 random bits, in letters that a header can carry.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, String> {
        use base64::Engine;
        let mut bytes = [0; TOKEN];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| "the system gives no random bytes".to_owned())?;
        Ok(Self(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The text. Whoever takes it keeps it out of logs and arguments.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the text: what is compared, and all that is kept of a token that somebody else has.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
