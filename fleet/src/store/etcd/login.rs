//! Who this host is to an etcd cluster that asks: a user and a password, from an owner-only file or from variables.
use crate::store::http::{Secret, owner_only};
use std::path::PathBuf;

/// Where user and password are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// An owner-only file that holds `user:password` on one line. Read at each login.
    File {
        /// The file.
        path: PathBuf,
        /// The setting that names it, for sentences.
        setting: &'static str,
    },
    /// Given in variables.
    Given {
        /// User.
        user: String,
        /// Password.
        password: Secret,
    },
}

impl Login {
    /// User and password.
    pub(super) fn read(&self) -> Result<(String, Secret), String> {
        match self {
            Self::Given { user, password } => Ok((user.clone(), password.clone())),
            Self::File { path, setting } => {
                let text = owner_only(setting, path)?;
                let pair =
                    text.trim().split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty());
                let (user, password) = pair.filter(|_| text.trim().lines().count() == 1).ok_or_else(|| {
                    format!("{setting} {} cannot be used: it must hold one line, user:password", path.display())
                })?;
                Ok((user.to_owned(), Secret::new(password)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_login_is_one_line_in_an_owner_only_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("login");
        let login = Login::File { path: path.clone(), setting: "storage.etcd.credentials_file" };
        let write = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("stado:a:b\n", 0o600);
        let (user, password) = login.read().unwrap();
        assert_eq!((user.as_str(), password.reveal()), ("stado", "a:b"));
        for bad in ["", "hidden", ":hidden", "stado:", "stado:hidden\nmore:hidden"] {
            write(bad, 0o600);
            let error = login.read().unwrap_err();
            assert!(error.contains("user:password") && !error.contains("hidden"), "{error}");
        }
        write("stado:hidden", 0o640);
        assert!(login.read().unwrap_err().contains("owner-only (chmod 600)"));
    }
}
