//! Who may do what: each namespace has one token, and prefixes that it covers (fleet contract §7.2).
use super::boundary::{Boundary, Closed, Digest256, Verifying};
use sha2::{Digest, Sha256};
use stado_fleet::store::object::{ObjectName, read_token};
use std::collections::BTreeMap;
use std::path::PathBuf;
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Read its bytes.
    Get,
    /// Write it.
    Put,
    /// Find it in a list.
    List,
    /// Ask its facts.
    Stat,
    /// Remove it.
    Delete,
}

impl std::str::FromStr for Action {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "get" => Ok(Self::Get),
            "put" => Ok(Self::Put),
            "list" => Ok(Self::List),
            "stat" => Ok(Self::Stat),
            "delete" => Ok(Self::Delete),
            other => Err(format!("{other:?} is none of get, put, list, stat, delete")),
        }
    }
}

/// Actions on the keys below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// One that ends in `/` covers what is below it, any other the one key. An empty one covers everything.
    pub prefix: String,
    /// What is allowed there.
    pub actions: Vec<Action>,
}

impl Prefix {
    fn covers(&self, key: &str) -> bool {
        match self.prefix.as_str() {
            "" => true,
            subtree if subtree.ends_with('/') => key.starts_with(subtree),
            exact => key == exact,
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.covers(&other.prefix) || other.covers(&self.prefix)
    }
}

/// Where a namespace's token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// An owner-only file of one line; read at each request, so that a new token needs no restart.
    File(PathBuf),
    /// An item of the vault, field `token`; asked at each request.
    Vault {
        /// Its id.
        item: String,
    },
}

/// One namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Whose bearer may do anything here.
    pub token: Token,
    /// What the token covers.
    pub prefixes: Vec<Prefix>,
}

/// Every namespace that is served.
#[derive(Debug, Default)]
pub struct Access {
    namespaces: BTreeMap<String, Namespace>,
    boundary: Option<Boundary>,
}

/// Why a request is not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// A wrong bearer, or none; which of them, and what else is there, a stranger is not told.
    Unauthorized,
    /// The right bearer, for something that it does not cover.
    NotCovered,
    /// Whether the bearer is right cannot be told.
    Unavailable(String),
}

impl Access {
    /// Namespaces by name, and what reads their tokens in the vault.
    ///
    /// # Errors
    /// A sentence: a name that no object can have, two prefixes of one namespace that cover the same key, a token of two
    /// namespaces, or one in a vault that is not configured.
    pub fn new(namespaces: BTreeMap<String, Namespace>, verifier: Option<Verifying>) -> Result<Self, String> {
        shared(&namespaces)?;
        for (name, namespace) in &namespaces {
            named(name, namespace)?;
            for (i, prefix) in namespace.prefixes.iter().enumerate() {
                if let Some(other) = namespace.prefixes.iter().take(i).find(|other| other.overlaps(prefix)) {
                    return Err(format!(
                        "object_api.namespaces.{name}: the prefixes {:?} and {:?} overlap; let one prefix cover each key",
                        other.prefix, prefix.prefix
                    ));
                }
            }
        }
        let items: BTreeMap<String, String> = namespaces
            .iter()
            .filter_map(|(name, namespace)| match &namespace.token {
                Token::Vault { item } => Some((name.clone(), item.clone())),
                Token::File(_) => None,
            })
            .collect();
        let boundary = match (items.first_key_value(), verifier) {
            (None, _) => None,
            (Some((name, _)), None) => {
                return Err(format!(
                    "object_api.namespaces.{name} has its token in the vault, and object_api.skarbiec.url names none; set it, \
                     or give the namespace a token_file"
                ));
            }
            (Some(_), Some(verifying)) => Some(Boundary::new(items, verifying)?),
        };
        Ok(Self { namespaces, boundary })
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.namespaces.keys().map(String::as_str).collect()
    }

    /// What is wrong with the token files, a sentence each: they are read at each request, and what cannot be used then is
    /// told before. Reads files.
    pub(super) fn unusable(&self) -> Vec<String> {
        let mut seen: BTreeMap<Vec<u8>, &str> = BTreeMap::new();
        let mut told = Vec::new();
        for (name, namespace) in &self.namespaces {
            let Token::File(file) = &namespace.token else { continue };
            match read_token(file).map(|token| Sha256::digest(token).to_vec()) {
                Err(why) => told.push(format!("object API: namespace {name} is closed: {why}")),
                Ok(digest) => match seen.get(&digest) {
                    Some(other) => told.push(format!(
                        "object API: the namespaces {other} and {name} have the same token, so that it opens both; write another \
                         one into {}",
                        file.display()
                    )),
                    None => {
                        seen.insert(digest, name);
                    }
                },
            }
        }
        told
    }

    /// Begins to look whether the vault can be asked. Must run inside a runtime.
    pub(super) fn begin(&self) {
        if let Some(boundary) = &self.boundary {
            boundary.begin();
        }
    }

    /// Namespaces that are closed now, with the reason: what the vault says, or does not.
    pub(super) fn closed(&self) -> Option<watch::Receiver<Closed>> {
        self.boundary.as_ref().map(Boundary::closed)
    }

    /// Whether every namespace's token can be read, as far as is known. Asks no vault, but reads files.
    pub(super) fn is_open(&self) -> bool {
        let files = self.namespaces.values().filter_map(|namespace| match &namespace.token {
            Token::File(file) => Some(file),
            Token::Vault { .. } => None,
        });
        let vault = self.boundary.as_ref().is_none_or(Boundary::is_open);
        vault && files.into_iter().all(|file| read_token(file).is_ok())
    }

    /// Whether a bearer may do this. It is answered soon, also by a vault that is not.
    pub(super) async fn allow(
        &self,
        namespace: &str,
        key: &str,
        action: Action,
        bearer: Option<&str>,
    ) -> Result<(), Denied> {
        let (Some(known), Some(bearer)) = (self.namespaces.get(namespace), bearer) else {
            return Err(Denied::Unauthorized);
        };
        let covered = known.prefixes.iter().any(|prefix| prefix.covers(key) && prefix.actions.contains(&action));
        match self.token(namespace, &known.token).await {
            Ok(token) if bool::from(Sha256::digest(bearer).as_slice().ct_eq(&token)) => {
                if covered {
                    Ok(())
                } else {
                    Err(Denied::NotCovered)
                }
            }
            // Whatever the token is: it would not cover this.
            Err(_) if !covered => Err(Denied::Unauthorized),
            Err(cause) => Err(Denied::Unavailable(cause)),
            Ok(_) => Err(Denied::Unauthorized),
        }
    }

    async fn token(&self, namespace: &str, token: &Token) -> Result<Digest256, String> {
        match (token, &self.boundary) {
            (Token::File(file), _) => {
                let file = file.clone();
                let read = tokio::task::spawn_blocking(move || read_token(&file)).await;
                read.map_err(|e| e.to_string())?.map(|token| Sha256::digest(token).into())
            }
            (Token::Vault { .. }, Some(boundary)) => boundary.token(namespace).await,
            (Token::Vault { .. }, None) => Err("no vault is configured".into()),
        }
    }
}

/// Refuses a namespace, and prefixes, that no object's name can begin with.
fn named(name: &str, namespace: &Namespace) -> Result<(), String> {
    // With a slash, the rest of the name would be read as the begin of a key.
    let of = if name.contains('/') { "" } else { name };
    let sound = |key: &str| ObjectName::parse(&format!("stado://{of}/{key}"));
    sound("x").map_err(|why| format!("object_api.namespaces.{name} can have no object: {why}"))?;
    for Prefix { prefix, .. } in &namespace.prefixes {
        let subtree = prefix.is_empty() || prefix.ends_with('/');
        sound(&if subtree { format!("{prefix}x") } else { prefix.clone() })
            .map_err(|why| format!("object_api.namespaces.{name}: the prefix {prefix:?} covers no object: {why}"))?;
    }
    Ok(())
}

/// Refuses a token that is declared for two namespaces: whoever has it would have both.
fn shared(namespaces: &BTreeMap<String, Namespace>) -> Result<(), String> {
    let mut seen: Vec<(&str, &Token)> = Vec::new();
    for (name, Namespace { token, .. }) in namespaces {
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == token) {
            let what = match token {
                Token::File(file) => format!("token_file {}", file.display()),
                Token::Vault { item } => format!("item {item} of the vault"),
            };
            return Err(format!(
                "object_api.namespaces.{other} and object_api.namespaces.{name} have the same {what}; give each its own token"
            ));
        }
        seen.push((name, token));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(prefix: &str) -> Prefix {
        Prefix { prefix: prefix.into(), actions: vec![Action::Get] }
    }

    fn access(prefixes: &[&str]) -> Result<Access, String> {
        let prefixes = prefixes.iter().map(|p| prefix(p)).collect();
        Access::new([("a".to_owned(), Namespace { token: Token::File("/none".into()), prefixes })].into(), None)
    }

    #[test]
    fn a_prefix_covers_its_key_or_what_is_below_it() {
        assert!(prefix("queue/").covers("queue/a") && !prefix("queue/").covers("queue"));
        assert!(
            prefix("registry.json").covers("registry.json") && !prefix("registry.json").covers("registry.json.bak")
        );
        assert!(prefix("").covers("anything"));
    }

    #[test]
    fn overlapping_prefixes_are_refused() {
        assert!(access(&["queue/", "registry.json", "other/"]).is_ok());
        for overlapping in [["queue/", "queue/a"], ["queue/a/", "queue/"], ["", "x"], ["x", "x"]] {
            assert!(access(&overlapping).unwrap_err().contains("overlap"), "{overlapping:?}");
        }
    }

    #[test]
    fn what_no_object_can_be_called_is_refused() {
        let one = |name: &str, covered: &str| {
            let namespace = Namespace { token: Token::File("/none".into()), prefixes: vec![prefix(covered)] };
            Access::new([(name.to_owned(), namespace)].into(), None).map(|_| ())
        };
        for (name, covered) in [("a", ""), ("a-1", "queue/"), ("a", "registry.json"), ("a", "x/y/")] {
            assert_eq!(one(name, covered), Ok(()), "{name} {covered}");
        }
        for name in ["public", "N_x", "", "a/b", "a.b"] {
            assert!(one(name, "x").unwrap_err().starts_with("object_api.namespaces."), "{name}");
        }
        for covered in ["../", "..", "a/../b/", "/", "/x", "a//", "./", "a\\b"] {
            assert!(one("a", covered).unwrap_err().contains("covers no object"), "{covered}");
        }
    }

    #[test]
    fn a_token_is_one_namespaces() {
        let two = |one: Token, two: Token| {
            let namespace = |token| Namespace { token, prefixes: vec![prefix("")] };
            Access::new([("a".to_owned(), namespace(one)), ("b".to_owned(), namespace(two))].into(), None)
        };
        let file = |name: &str| Token::File(name.into());
        let same = two(file("/t"), file("/t")).unwrap_err();
        assert!(same.contains("namespaces.a and object_api.namespaces.b have the same token_file /t"), "{same}");
        let item = || Token::Vault { item: "x".into() };
        assert!(two(item(), item()).unwrap_err().contains("the same item x of the vault"));
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &str, mode: u32| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(path(name), text).unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let told = || two(Token::File(path("a")), Token::File(path("b"))).unwrap().unusable();
        write("a", "one", 0o600);
        write("b", "two", 0o600);
        assert_eq!(told(), [""; 0]);
        write("b", "one\n", 0o600);
        assert!(told()[0].contains("the namespaces a and b have the same token"), "{:?}", told());
        write("b", "two", 0o644);
        let open = told();
        assert!(open.len() == 1 && open[0].starts_with("object API: namespace b is closed: "), "{open:?}");
        assert!(open[0].contains("must be owner-only (chmod 600)"), "{open:?}");
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_read_is_no_refusal_of_the_bearer() {
        let access = access(&["x"]).unwrap();
        assert!(matches!(access.allow("a", "x", Action::Get, Some("t")).await, Err(Denied::Unavailable(_))));
        assert_eq!(access.allow("a", "x", Action::Get, None).await, Err(Denied::Unauthorized));
        assert_eq!(access.allow("b", "x", Action::Get, Some("t")).await, Err(Denied::Unauthorized));
        assert_eq!(access.allow("a", "y", Action::Get, Some("t")).await, Err(Denied::Unauthorized), "never allowed");
    }

    #[test]
    fn a_token_in_a_vault_needs_one() {
        let namespace = Namespace { token: Token::Vault { item: "a-object-api".into() }, prefixes: vec![prefix("")] };
        let refused = Access::new([("a".to_owned(), namespace)].into(), None).unwrap_err();
        assert!(refused.contains("object_api.skarbiec.url names none"), "{refused}");
    }
}
