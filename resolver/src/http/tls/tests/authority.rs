use super::support::{Rig, pair, wait_for};
use crate::http::tls::authority::{self, KEY};
use crate::http::tls::{Tls, TlsSettings};
use jiff::{SignedDuration, Timestamp};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const DAY: SignedDuration = SignedDuration::from_hours(24);

async fn rig(folder: &Path) -> Rig {
    let authority = Some(folder.to_owned());
    Rig::start(TlsSettings { authority, ..TlsSettings::default() }).await
}

fn create(folder: &Path) -> authority::AuthorityFacts {
    authority::create(folder, "ann@desk", Timestamp::now()).unwrap()
}

/// A client that trusts this authority and nothing else.
fn trusting(facts: &authority::AuthorityFacts) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(facts.der.clone().into()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    Arc::new(builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth())
}

#[test]
fn the_authority_is_this_persons_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tls");
    let facts = create(&folder);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join(KEY))), (0o700, 0o600));
    assert!(facts.subject.contains("ann@desk"), "{}", facts.subject);
    assert_eq!(authority::read(&folder).unwrap().unwrap(), facts);
    std::fs::set_permissions(folder.join(KEY), std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = Tls::load(TlsSettings { authority: Some(folder), ..TlsSettings::default() }).unwrap_err();
    assert!(error.to_string().contains("others than you may read the authority's key (mode 640)"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_made_for_each_local_name_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let facts = create(dir.path());
    let (rig, client) = (rig(dir.path()).await, trusting(&facts));
    for name in ["localhost", "checkout-api.localhost", "a.b.c.test"] {
        assert_eq!(rig.ask_with(name, client.clone()).await.unwrap(), format!("{name} h1 {name}"));
    }
    let here = rig.ask_with("127.0.0.1", client.clone()).await.unwrap();
    assert_eq!(here, "- h1 localhost,127.0.0.1,::1");
    let error = rig.ask_with("example.com", client).await.unwrap_err().to_string();
    assert!(rig.tls.serves("a.test", Timestamp::now()) && !rig.tls.serves("example.com", Timestamp::now()));
    assert!(error.contains("UnrecognizedName") || error.contains("UnrecognisedName"), "{error}");
    rig.problem("no certificate for example.com").await;
}

#[tokio::test]
async fn one_is_kept_and_made_anew_before_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let (rig, now) = (rig(dir.path()).await, Timestamp::now());
    let at = |days: i32| rig.tls.choose(Some("a.test"), [127, 0, 0, 1].into(), now + days * DAY);
    let until = |days| at(days).unwrap().not_after;
    let first = until(0);
    assert_eq!(until(19), first);
    let second = until(21);
    assert!(second > first && first > now + 21 * DAY, "renewed while the old one still holds");
    assert!(until(3640) < now + 3651 * DAY, "never beyond the authority's own end");
    let over = at(3651).unwrap_err().to_string();
    assert!(over.contains("local authority, expired at"), "{over}");
    let status = rig.tls.status(now + 3651 * DAY);
    assert!(status[0].problem.as_ref().unwrap().contains("stado tls init --renew"), "{status:?}");
}

#[tokio::test]
async fn clients_refuse_what_the_authority_may_not_vouch_for() {
    let dir = tempfile::tempdir().unwrap();
    let facts = create(dir.path());
    for (host, accepted) in [("a.test", true), ("example.com", false), ("10.0.0.1", false)] {
        let files = authority::issue_anything(dir.path(), host);
        let rig = Rig::of([files]).await;
        let answer = rig.ask_with(host, trusting(&facts)).await;
        assert_eq!(answer.is_ok(), accepted, "{host}: {answer:?}");
        if let Err(error) = answer {
            assert!(error.to_string().contains("NameConstraint"), "{error}");
        }
    }
}

#[tokio::test]
async fn files_that_were_configured_come_before_the_authority() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let more = vec![pair(dir.path(), "own", &["own.test", "public.example"])];
    let authority = Some(dir.path().to_owned());
    let rig = Rig::start(TlsSettings { more, authority, ..TlsSettings::default() }).await;
    assert_eq!(rig.ask("own.test").await.unwrap(), "own.test h1 own.test,public.example");
    assert_eq!(rig.ask("other.test").await.unwrap(), "other.test h1 other.test");
    assert_eq!(rig.ask("127.0.0.1").await.unwrap(), "- h1 localhost,127.0.0.1,::1");
}

#[tokio::test]
async fn a_new_authority_is_taken_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path());
    let rig = rig(dir.path()).await;
    let before = rig.shown("a.test").await;
    std::fs::write(dir.path().join(KEY), "nothing").unwrap();
    wait_for("the problem is said", async || {
        assert_eq!(rig.shown("a.test").await, before);
        rig.tls.status(Timestamp::now())[0].problem.as_ref().is_some_and(|text| text.contains("holds no private key"))
    })
    .await;
    let facts = create(dir.path());
    wait_for("the new authority signs", async || rig.ask_with("a.test", trusting(&facts)).await.is_ok()).await;
}
