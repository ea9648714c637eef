//! Invitations from the authority's side: what becomes of each that is shown.
use super::*;
use crate::authority::{Exec, RegistryError, Source};
use crate::edit::{Member, found};
use crate::fault::Class;
use crate::link::{ExecLimits, ExecOutput, LinkError};
use crate::name::{ConnectionPath, TargetName};
use crate::store::local::LocalStore;
use crate::store::{Expected, RegistryStore};
use jiff::{SignedDuration, Timestamp};
use std::pin::Pin;
use std::sync::Arc;

/// The authority writes its own store: nobody else is asked.
struct Nobody;

impl Exec for Nobody {
    fn exec<'a>(
        &'a self,
        _: &'a TargetName,
        _: &'a [ConnectionPath],
        _: &'a str,
        _: &'a [u8],
        _: ExecLimits,
    ) -> Pin<Box<dyn Future<Output = Result<ExecOutput, LinkError>> + Send + 'a>> {
        panic!("nobody is asked")
    }
}

struct Authority {
    _dir: tempfile::TempDir,
    shelf: Shelf,
    store: Arc<LocalStore>,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn key(n: u8) -> String {
    let pair = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[n; 32]);
    public_key(&russh::keys::PrivateKey::from(pair))
}

impl Authority {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::open(dir.path().join("store")).unwrap());
        let member = Member {
            name: "tower".into(),
            release_platform: "linux-amd64".into(),
            ssh: Some("me@tower.local:17622".into()),
            command: "/usr/local/bin/stado".into(),
            host_keys: vec![key(1)],
            key: key(2),
        };
        store.swap(Expected::Absent, found(&member).bytes().to_vec()).await.unwrap();
        Self { shelf: Shelf::new(dir.path()), store, _dir: dir }
    }

    fn invite(&self, valid: i64, name: Option<&str>) -> Invitation {
        let ways = vec!["me@tower.local:17622".parse().unwrap()];
        let from = ("tower".parse().unwrap(), "/usr/local/bin/stado".to_owned());
        let name = name.map(|name| name.parse().unwrap());
        let invitation = Invitation::new(from, ways, vec![key(1)], at(valid), name).unwrap();
        self.shelf.change(|book| book.add(&invitation, at(0))).unwrap();
        invitation
    }

    async fn show(&self, invitation: &Invitation, host: (&str, u8), seconds: i64) -> Result<Welcome, RegistryError> {
        let candidate = Candidate {
            version: 1,
            name: host.0.parse().unwrap(),
            key: key(host.1),
            release_platform: "linux-amd64".into(),
            command: "/usr/bin/stado".into(),
            ssh: None,
            host_keys: Vec::new(),
        };
        let presented =
            Presented { invitation: invitation.public_key(), from: format!("10.0.0.{}", host.1), candidate };
        admit(&self.shelf, &Source::Store(self.store.clone()), &Nobody, &presented, at(seconds)).await
    }

    async fn remove(&self, host: &str) {
        let stored = self.store.read().await.unwrap().unwrap();
        let document = crate::document::Document::parse(stored.bytes).unwrap();
        let edited = crate::edit::remove_host(&document, host).unwrap();
        self.store.swap(Expected::Version(stored.version), edited.document.bytes().to_vec()).await.unwrap();
    }

    async fn hosts(&self) -> Vec<String> {
        let stored = self.store.read().await.unwrap().unwrap();
        let document = crate::document::Document::parse(stored.bytes).unwrap();
        let valid = crate::validate::validate(document).unwrap();
        valid.registry.targets.keys().map(ToString::to_string).collect()
    }

    fn fate(&self, invitation: &Invitation, seconds: i64) -> Fate {
        self.shelf.read().unwrap().of_key(&invitation.public_key()).unwrap().fate(at(seconds))
    }
}

#[tokio::test]
async fn an_invitation_lets_one_host_in_and_the_same_host_again_whenever_it_was_cut() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    let first = authority.show(&invitation, ("laptop", 10), 5).await.unwrap();
    assert_eq!((first.target.as_str(), first.authority.as_str(), first.again), ("laptop", "tower", false));
    assert_eq!(authority.hosts().await, ["tower", "laptop"]);
    // Also long after it ended: what was begun is brought to its end.
    let again = authority.show(&invitation, ("laptop", 10), 9000).await.unwrap();
    assert!(again.again);
    assert_eq!(authority.hosts().await, ["tower", "laptop"]);
    assert!(authority.shelf.read().unwrap().warnings().is_empty(), "that is no theft");
}

#[tokio::test]
async fn a_host_that_left_or_was_removed_does_not_come_back_by_the_invitation_that_let_it_in() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    authority.show(&invitation, ("laptop", 10), 5).await.unwrap();
    let other = authority.show(&invitation, ("desk", 10), 6).await.unwrap_err();
    assert!(
        other.sentence.contains("has let this host in as laptop before"),
        "no second name either: {}",
        other.sentence
    );
    authority.remove("laptop").await;
    for name in ["laptop", "desk"] {
        let error = authority.show(&invitation, (name, 10), 60).await.unwrap_err();
        assert_eq!(error.class, Class::Refused);
        assert!(error.sentence.contains("lets a host in once"), "{}", error.sentence);
    }
    assert_eq!(authority.hosts().await, ["tower"]);
    let fresh = authority.invite(3600, None);
    assert!(!authority.show(&fresh, ("laptop", 10), 70).await.unwrap().again, "another one does");
}

#[tokio::test]
async fn one_that_was_used_is_refused_to_another_host_and_its_owner_is_told_until_they_know() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    authority.show(&invitation, ("evil", 66), 5).await.unwrap();
    let refused = authority.show(&invitation, ("laptop", 10), 65).await.unwrap_err();
    assert_eq!(refused.class, Class::Refused);
    let sentence = &refused.sentence;
    assert!(sentence.contains("was used already, at 2027-01-15T08:00:05Z by evil from 10.0.0.66"), "{sentence}");
    assert_eq!(authority.hosts().await, ["tower", "evil"]);
    let book = authority.shelf.read().unwrap();
    let [warning] = &book.warnings()[..] else { panic!("{book:?}") };
    assert!(warning.contains("shown again at 2027-01-15T08:01:05Z from 10.0.0.10 (as laptop)"), "{warning}");
    assert!(warning.contains("`stado registry host remove evil`"), "{warning}");
    authority.shelf.change(Book::seen).unwrap();
    assert!(authority.shelf.read().unwrap().warnings().is_empty());
    authority.show(&invitation, ("laptop", 10), 70).await.unwrap_err();
    assert_eq!(authority.shelf.read().unwrap().warnings().len(), 1, "a new attempt is new");
}

#[tokio::test]
async fn one_that_expired_or_was_withdrawn_or_is_for_another_name_lets_nobody_in() {
    let authority = Authority::new().await;
    let late = authority.invite(60, None);
    let refused = authority.show(&late, ("laptop", 10), 200).await.unwrap_err().sentence;
    let told = "expired at 2027-01-15T08:01:00Z (2m ago by the clock of the authority): ask for a new one, which `stado fleet \
                invite` makes on the authority";
    assert!(refused.ends_with(told), "{refused}");
    let withdrawn = authority.invite(60, None);
    let taken_back = authority.shelf.change(|book| book.withdraw(&withdrawn.id, at(1))).unwrap();
    assert_eq!(taken_back, Some(Fate::Open));
    let refused = authority.show(&withdrawn, ("laptop", 10), 2).await.unwrap_err().sentence;
    assert!(refused.contains("was withdrawn at 2027-01-15T08:00:01Z: ask for a new one"), "{refused}");
    let named = authority.invite(60, Some("desk"));
    assert!(authority.show(&named, ("laptop", 10), 2).await.unwrap_err().sentence.contains("is for desk alone"));
    authority.show(&named, ("desk", 11), 3).await.unwrap();
    let strange =
        Invitation::new(("tower".parse().unwrap(), "/x".into()), vec!["t".parse().unwrap()], vec![key(1)], at(9), None);
    assert!(
        authority.show(&strange.unwrap(), ("laptop", 10), 2).await.unwrap_err().sentence.contains("not known here")
    );
    assert_eq!(authority.hosts().await, ["tower", "desk"]);
    for again in [&late, &withdrawn] {
        authority.show(again, ("stranger", 12), 300).await.unwrap_err();
    }
    assert!(
        authority.shelf.read().unwrap().warnings().is_empty(),
        "nobody had used them, however often they are shown"
    );
}

#[tokio::test]
async fn a_refusal_by_the_registry_leaves_the_invitation_open_and_a_failure_keeps_it_for_the_same_host() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    let refused = authority.show(&invitation, ("tower", 10), 5).await.unwrap_err();
    assert!(refused.sentence.starts_with("tower is another host of this fleet"), "{refused}");
    assert_eq!(authority.fate(&invitation, 6), Fate::Open);
    // The registry is not there for a moment: whether it was written is not known.
    let stored = authority.store.read().await.unwrap().unwrap();
    let file = authority._dir.path().join("store");
    std::fs::rename(&file, authority._dir.path().join("away")).unwrap();
    let failed = authority.show(&invitation, ("laptop", 10), 7).await.unwrap_err();
    assert!(!matches!(failed.class, Class::Refused), "{failed:?}");
    assert_eq!(authority.fate(&invitation, 8), Fate::Used);
    let _ = std::fs::remove_dir_all(&file);
    std::fs::rename(authority._dir.path().join("away"), &file).unwrap();
    assert_eq!(authority.store.read().await.unwrap().unwrap().version, stored.version);
    assert!(authority.show(&invitation, ("other", 11), 9).await.is_err(), "it belongs to the host that was cut");
    authority.show(&invitation, ("laptop", 10), 10).await.unwrap();
    assert_eq!(authority.hosts().await, ["tower", "laptop"]);
}

#[tokio::test]
async fn the_registry_may_forbid_joining() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    let stored = authority.store.read().await.unwrap().unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&stored.bytes).unwrap();
    value["enrollment"] = serde_json::json!({"allow_join": false});
    authority.store.swap(Expected::Version(stored.version), value.to_string().into_bytes()).await.unwrap();
    let refused = authority.show(&invitation, ("laptop", 10), 5).await.unwrap_err().sentence;
    assert_eq!(refused, "the registry does not allow it: enrollment.allow_join is false");
    assert_eq!(authority.fate(&invitation, 6), Fate::Open);
}

#[tokio::test]
async fn of_twenty_hosts_that_show_one_invitation_at_once_one_gets_in() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    let names: Vec<String> = (0..20).map(|n| format!("host-{n}")).collect();
    let showing = (10..30).zip(&names).map(|(n, name)| authority.show(&invitation, (name.as_str(), n), 5));
    let answers = futures_util::future::join_all(showing).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(authority.hosts().await.len(), 2);
}

#[tokio::test]
async fn a_host_that_leaves_is_named_no_more_and_one_that_serves_is_kept() {
    let authority = Authority::new().await;
    let invitation = authority.invite(3600, None);
    authority.show(&invitation, ("laptop", 10), 5).await.unwrap();
    let source = Source::Store(authority.store.clone());
    let left = |name: &str| name.parse::<TargetName>().unwrap();
    assert!(strike(&source, &Nobody, &left("laptop")).await.unwrap());
    assert!(!strike(&source, &Nobody, &left("laptop")).await.unwrap(), "twice is once");
    let refused = strike(&source, &Nobody, &left("tower")).await.unwrap_err().sentence;
    assert!(refused.starts_with("tower is still named by empty_directory.authority"), "{refused}");
}

#[test]
fn a_corrupt_book_is_set_aside_and_lets_nobody_in() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(dir.path());
    shelf.change(|_| ()).unwrap();
    std::fs::write(shelf.path(), "{ half").unwrap();
    assert!(shelf.read().unwrap_err().sentence.contains("cannot be read"));
    shelf.change(Book::seen).unwrap();
    assert!(shelf.read().is_ok_and(|book| book.invitations.is_empty()));
    let aside = std::fs::read_dir(shelf.path().parent().unwrap()).unwrap().flatten();
    assert!(aside.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("invitations.json.")));
}

#[test]
fn invitations_that_are_over_are_forgotten_after_a_month_and_open_ones_are_not() {
    let invite = |days: i64| {
        let expires = at(0) + SignedDuration::from_hours(24 * days);
        Invitation::new(("t".parse().unwrap(), "/x".into()), vec!["t".parse().unwrap()], vec![key(1)], expires, None)
            .unwrap()
    };
    let (short, long, next) = (invite(1), invite(100), invite(100));
    let mut book = Book::default();
    book.add(&short, at(0));
    book.add(&long, at(0));
    book.add(&next, at(0) + SignedDuration::from_hours(24 * 40));
    assert!(book.of_key(&short.public_key()).is_none());
    assert!(book.of_key(&long.public_key()).is_some() && book.of_key(&next.public_key()).is_some());
}

#[test]
fn the_own_configuration_is_changed_key_by_key() {
    let dir = tempfile::tempdir().unwrap();
    let own = OwnConfig::new(dir.path());
    let name: TargetName = "laptop".parse().unwrap();
    let door = Door::Gate("0.0.0.0:17622".parse().unwrap());
    assert!(own.name(&name, None).unwrap());
    std::fs::write(dir.path().join("config.json"), r#"{"api_bind":"127.0.0.1:1","gate":{"more":1}}"#).unwrap();
    assert!(own.name(&name, Some(&door)).unwrap());
    assert!(!own.name(&name, Some(&door)).unwrap(), "twice is once");
    let text = std::fs::read_to_string(dir.path().join("config.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let wanted =
        serde_json::json!({"api_bind":"127.0.0.1:1","gate":{"more":1,"bind":"0.0.0.0:17622"},"target":"laptop"});
    assert_eq!(value, wanted);
    forget(dir.path()).unwrap();
    assert!(!std::fs::read_to_string(dir.path().join("config.json")).unwrap().contains("target"));
    std::fs::write(dir.path().join("config.json"), "[]").unwrap();
    assert!(own.name(&name, None).unwrap_err().contains("holds no JSON object"));
}
