//! What one host is given to join with: where the authority is, what it proves to be, and a secret that works once.
use crate::name::{SshDestination, TargetName};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::Ed25519Keypair;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What every invitation begins with; the number is the version of its form.
const BEGIN: &str = "stado1_";
/// Bytes of the digest at its end: a slip of the hand is found, an intention is not (its secret would not be known).
const DIGEST: usize = 6;
/// Far above any invitation.
const LONGEST: usize = 8 * 1024;

/// An invitation. Its `Debug` keeps the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Its name on the authority; not secret.
    pub id: String,
    /// The authority.
    pub authority: TargetName,
    /// Absolute path of `stado` there.
    pub command: String,
    /// Ways to it, in order.
    pub ways: Vec<SshDestination>,
    /// Keys by which it is known, each as `type base64`.
    pub host_keys: Vec<String>,
    /// When it ends, by the authority's clock.
    pub expires: Timestamp,
    /// The only name under which a host may join with it, when one was given.
    pub name: Option<TargetName>,
    secret: Secret,
}

#[derive(Clone, PartialEq, Eq)]
struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Why a text is no usable invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadInvitation {
    /// Something else.
    #[error("this is no invitation: one begins with `stado1_`; `stado fleet invite` on the first host makes it")]
    NotOne,
    /// Made by a newer build.
    #[error("this invitation was made by a newer stado; install the same version on this host")]
    Newer,
    /// A part is missing, or something was changed.
    #[error(
        "the invitation is not whole, or was changed on its way here: copy the whole line again, or ask for a new one"
    )]
    Damaged,
}

impl crate::fault::Faulty for BadInvitation {
    fn blame(&self) -> crate::fault::Blame {
        crate::fault::Blame::Credentials
    }
    fn class(&self) -> crate::fault::Class {
        crate::fault::Class::Refused
    }
}

/// As it is written; short names, since people copy it.
#[derive(Serialize, Deserialize)]
struct Text {
    i: String,
    a: TargetName,
    c: String,
    w: Vec<String>,
    k: Vec<String>,
    e: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<TargetName>,
    s: String,
}

impl Invitation {
    /// A new one, with a secret that nobody knows yet.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn new(
        (authority, command): (TargetName, String),
        ways: Vec<SshDestination>,
        host_keys: Vec<String>,
        expires: Timestamp,
        name: Option<TargetName>,
    ) -> Result<Self, String> {
        let (mut id, mut secret) = ([0; 5], [0; 32]);
        for bytes in [&mut id[..], &mut secret[..]] {
            aws_lc_rs::rand::fill(bytes).map_err(|_| "the system gives no random bytes".to_owned())?;
        }
        let id = hex::encode(id);
        Ok(Self { id, authority, command, ways, host_keys, expires, name, secret: Secret(secret) })
    }

    /// The text that is handed over. Whoever takes it keeps it out of arguments and logs.
    pub fn reveal(&self) -> String {
        let text = Text {
            i: self.id.clone(),
            a: self.authority.clone(),
            c: self.command.clone(),
            w: self.ways.iter().map(ToString::to_string).collect(),
            k: self.host_keys.clone(),
            e: self.expires.as_second(),
            n: self.name.clone(),
            s: URL_SAFE_NO_PAD.encode(self.secret.0),
        };
        // Texts and a number: it always serialises.
        let mut bytes = serde_json::to_vec(&text).unwrap_or_default();
        bytes.extend_from_slice(&digest(&bytes));
        format!("{BEGIN}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads one; blanks and line ends inside it are those of a terminal.
    ///
    /// # Errors
    /// Anything that is not a whole invitation.
    pub fn parse(text: &str) -> Result<Self, BadInvitation> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).take(LONGEST).collect();
        let Some(rest) = text.strip_prefix(BEGIN) else {
            let newer = text.strip_prefix("stado").and_then(|rest| rest.split_once('_')?.0.parse::<u32>().ok());
            return Err(if newer.is_some() { BadInvitation::Newer } else { BadInvitation::NotOne });
        };
        let bytes = URL_SAFE_NO_PAD.decode(rest).map_err(|_| BadInvitation::Damaged)?;
        let at = bytes.len().checked_sub(DIGEST).ok_or(BadInvitation::Damaged)?;
        let (body, found) = bytes.split_at_checked(at).ok_or(BadInvitation::Damaged)?;
        if digest(body) != found {
            return Err(BadInvitation::Damaged);
        }
        serde_json::from_slice::<Text>(body).ok().and_then(Self::of).ok_or(BadInvitation::Damaged)
    }

    fn of(text: Text) -> Option<Self> {
        let secret = URL_SAFE_NO_PAD.decode(text.s).ok()?.try_into().ok()?;
        let ways = text.w.iter().map(|way| way.parse().ok()).collect::<Option<Vec<_>>>()?;
        let usable = !ways.is_empty() && !text.k.is_empty() && text.c.starts_with('/');
        usable.then_some(Self {
            id: text.i,
            authority: text.a,
            command: text.c,
            ways,
            host_keys: text.k,
            expires: Timestamp::from_second(text.e).ok()?,
            name: text.n,
            secret: Secret(secret),
        })
    }

    /// The key that it stands for: the authority keeps the public half, so that nothing it keeps lets anybody in.
    pub fn key(&self) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&self.secret.0))
    }

    /// The public half, as `type base64`.
    pub fn public_key(&self) -> String {
        super::public_key(&self.key())
    }
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).iter().copied().take(DIGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn invitation() -> Invitation {
        let ways = vec!["me@tower.local:17622".parse().unwrap(), "[::1]:22".parse().unwrap()];
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ".to_owned();
        let expires = Timestamp::from_second(1_800_000_000).unwrap();
        let authority = ("tower".parse().unwrap(), "/usr/local/bin/stado".to_owned());
        Invitation::new(authority, ways, vec![key], expires, Some("laptop".parse().unwrap())).unwrap()
    }

    #[test]
    fn it_comes_back_whole_also_when_a_terminal_broke_the_line() {
        let made = invitation();
        let text = made.reveal();
        assert!(text.len() < 600, "{} bytes: too long to copy", text.len());
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "no shell changes it");
        assert_eq!(Invitation::parse(&text).unwrap(), made);
        let (a, b) = text.split_at(80);
        assert_eq!(Invitation::parse(&format!("  {a}\r\n{b}\n")).unwrap().public_key(), made.public_key());
    }

    #[test]
    fn two_invitations_have_nothing_secret_in_common_and_debug_says_none_of_it() {
        let (a, b) = (invitation(), invitation());
        assert!(a.id != b.id && a.public_key() != b.public_key());
        assert!(!format!("{a:?}").contains(&URL_SAFE_NO_PAD.encode(a.secret.0)));
        assert!(format!("{a:?}").contains("secret: Secret"));
    }

    #[test]
    fn what_is_no_invitation_is_told_from_a_damaged_and_a_newer_one() {
        let text = invitation().reveal();
        let bad = |text: &str| Invitation::parse(text).unwrap_err();
        assert_eq!(bad(""), BadInvitation::NotOne);
        assert_eq!(bad("ssh-ed25519 AAAA"), BadInvitation::NotOne);
        assert_eq!(bad("stado2_abc"), BadInvitation::Newer);
        assert_eq!(bad(&text[..text.len() - 3]), BadInvitation::Damaged);
        assert_eq!(bad("stado1_"), BadInvitation::Damaged);
        assert_eq!(bad(&format!("{text}x")), BadInvitation::Damaged);
    }

    proptest! {
        #[test]
        fn no_change_of_one_letter_goes_unseen(at in 7usize..400, to in "[A-Za-z0-9_-]") {
            let made = invitation();
            let mut text = made.reveal();
            let at = at.min(text.len() - 1);
            if text[at..=at] != to {
                text.replace_range(at..=at, &to);
                // The last letter may carry bits that stand for nothing.
                prop_assert!(Invitation::parse(&text).is_err() || at == text.len() - 1);
            }
        }

        #[test]
        fn no_text_is_a_panic(text in "(stado[0-9]_)?[A-Za-z0-9_-]{0,80}") {
            prop_assert!(Invitation::parse(&text).is_err());
        }
    }
}
