//! Who this host is to an S3 store: a key and its secret, from an owner-only file or from the usual variables.
use crate::store::http::{Secret, owner_only};
use std::path::{Path, PathBuf};

/// Where the keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// An owner-only file as other tools write it, and the profile in it. Read at each request, so that new keys need no
    /// restart.
    File {
        /// The file.
        path: PathBuf,
        /// `[profile]`.
        profile: String,
        /// The setting that names it, for sentences.
        setting: &'static str,
    },
    /// Given in variables.
    Given {
        /// `AWS_ACCESS_KEY_ID`.
        id: String,
        /// `AWS_SECRET_ACCESS_KEY`.
        secret: Secret,
        /// `AWS_SESSION_TOKEN`.
        token: Option<Secret>,
    },
    /// Nowhere: the sentence says where they are looked for.
    Missing(String),
}

/// A key, its secret, and the token of one that is lent.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub(super) id: String,
    pub(super) secret: Secret,
    pub(super) token: Option<Secret>,
}

impl Keys {
    /// The keys as they are now.
    pub(super) fn read(&self) -> Result<Pair, String> {
        match self {
            Self::Missing(sentence) => Err(sentence.clone()),
            Self::Given { id, secret, token } => {
                Ok(Pair { id: id.clone(), secret: secret.clone(), token: token.clone() })
            }
            Self::File { path, profile, setting } => {
                profile_of(&owner_only(setting, path)?, profile).ok_or_else(|| incomplete(setting, path, profile))
            }
        }
    }
}

fn incomplete(setting: &str, path: &Path, profile: &str) -> String {
    format!(
        "{setting} {} cannot be used: it must hold [{profile}] with aws_access_key_id = … and aws_secret_access_key = …",
        path.display()
    )
}

/// `[profile]`, then `key = value` lines.
fn profile_of(text: &str, profile: &str) -> Option<Pair> {
    let mut inside = false;
    let (mut id, mut secret, mut token) = (None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.trim() == profile;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match key.trim() {
                "aws_access_key_id" => id = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    Some(Pair { id: id?, secret: Secret::new(secret?), token: token.map(Secret::new) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_named_profile_counts_and_half_a_pair_is_none() {
        let text =
            "# keys\n[other]\naws_access_key_id = A\n\n[default]\naws_access_key_id=B\naws_secret_access_key = c=d\n";
        let keys = profile_of(text, "default").unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.reveal(), keys.token.is_none()), ("B", "c=d", true));
        assert!(profile_of(text, "other").is_none());
        assert!(profile_of(text, "none").is_none());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_and_no_secret_shows_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, "[default]\naws_access_key_id = A\naws_secret_access_key = hidden\n").unwrap();
        let keys = Keys::File { path: path.clone(), profile: "default".into(), setting: "storage.s3.credentials_file" };
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        let error = keys.read().unwrap_err();
        assert!(error.starts_with("storage.s3.credentials_file must be owner-only (chmod 600): "), "{error}");
        mode(0o600);
        assert_eq!(keys.read().unwrap().id, "A");
        let given = Keys::Given { id: "A".into(), secret: Secret::new("hidden"), token: Some(Secret::new("hidden")) };
        assert!(!format!("{given:?}").contains("hidden"));
    }
}
