use super::support::{Rig, pair, pair_between};
use crate::http::tls::{PairFiles, Tls, TlsSettings, backend};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use tokio_rustls::rustls::version::{TLS12, TLS13};

fn refusal(pair: PairFiles) -> String {
    Tls::load(TlsSettings { pair: Some(pair), ..TlsSettings::default() }).unwrap_err().to_string()
}

#[test]
fn a_pair_that_does_not_belong_together_is_refused_when_it_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (pair(dir.path(), "a", &["a.test"]), pair(dir.path(), "b", &["b.test"]));
    let text = refusal(PairFiles { cert: a.cert.clone(), key: b.key });
    assert!(text.starts_with("load TLS certificate/key: ") && text.contains("does not belong"), "{text}");
    let text = refusal(PairFiles { cert: a.key.clone(), key: a.key.clone() });
    assert!(text.contains("holds no certificate"), "{text}");
    let text = refusal(PairFiles { cert: a.cert.clone(), key: a.cert.clone() });
    assert!(text.contains("holds no private key"), "{text}");
    std::fs::write(
        dir.path().join("e"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    let text = refusal(PairFiles { cert: a.cert.clone(), key: dir.path().join("e") });
    assert!(text.contains("is encrypted"), "{text}");
    let text = refusal(PairFiles { cert: a.cert, key: dir.path().join("absent") });
    assert!(text.ends_with("absent: no such file"), "{text}");
}

#[test]
fn nothing_configured_is_no_tls_at_all() {
    assert!(Tls::load(TlsSettings::default()).unwrap().is_none());
    let dir = tempfile::tempdir().unwrap();
    let empty = TlsSettings { authority: Some(dir.path().to_owned()), ..TlsSettings::default() };
    assert!(Tls::load(empty).unwrap().is_none());
}

#[tokio::test]
async fn the_certificate_is_chosen_by_the_name_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let wild = pair(dir.path(), "wild", &["*.test"]);
    let exact = pair(dir.path(), "exact", &["a.test"]);
    let here = pair(dir.path(), "here", &["127.0.0.1"]);
    let rig = Rig::of([wild, exact, here]).await;
    assert_eq!(rig.ask("a.test").await.unwrap(), "a.test h1 a.test");
    assert_eq!(rig.ask("B.test").await.unwrap(), "b.test h1 *.test");
    assert_eq!(rig.ask("127.0.0.1").await.unwrap(), "- h1 127.0.0.1");
    // Nothing is for this name: the first is shown, and it does not cover the name.
    assert_eq!(rig.ask("example.com").await.unwrap(), "example.com h1 *.test");
}

#[tokio::test]
async fn a_bad_pair_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let good = pair(dir.path(), "good", &["good.test"]);
    let bad = PairFiles { cert: dir.path().join("absent"), key: good.key.clone() };
    let rig = Rig::of([bad.clone(), good]).await;
    assert_eq!(rig.ask("good.test").await.unwrap(), "good.test h1 good.test");
    let status = rig.tls.status(Timestamp::now());
    assert!(status[0].problem.as_ref().unwrap().contains("no such file") && status[0].names.is_empty(), "{status:?}");
    assert_eq!(status[1].names, ["good.test"]);
    let alone = Tls::load(TlsSettings { more: vec![bad], ..TlsSettings::default() });
    assert!(alone.unwrap_err().to_string().contains("no such file"));
}

#[tokio::test]
async fn expiry_is_checked_at_every_handshake() {
    let dir = tempfile::tempdir().unwrap();
    let (hour, now) = (SignedDuration::from_hours(1), Timestamp::now());
    let old = pair_between(dir.path(), "old", &["a.test", "b.test"], now - 2 * hour, now - hour);
    let early = pair_between(dir.path(), "early", &["c.test"], now + hour, now + 2 * hour);
    let new = pair(dir.path(), "new", &["a.test"]);
    let rig = Rig::of([old, early, new]).await;
    assert_eq!(rig.ask("a.test").await.unwrap(), "a.test h1 a.test");
    let error = rig.ask("b.test").await.unwrap_err().to_string();
    assert!(error.contains("CertificateExpired"), "{error}");
    rig.problem("the certificate for b.test expired at").await;
    assert!(rig.ask("c.test").await.is_err());
    rig.problem("the certificate for c.test does not hold before").await;
    let status = rig.tls.status(now);
    assert!(status[0].problem.as_ref().unwrap().starts_with("expired at"), "{status:?}");
    // A certificate that was good when it was loaded ends while the daemon runs.
    let later = rig.tls.choose(Some("a.test"), [127, 0, 0, 1].into(), now + 2 * hour).unwrap_err();
    assert!(later.to_string().contains("a.test expired at"), "{later}");
}

#[tokio::test]
async fn tls_1_2_and_1_3_are_spoken_and_nothing_older() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::of([pair(dir.path(), "a", &["a.test"])]).await;
    for version in [&TLS12, &TLS13] {
        let config = backend::trusting(&[version]).unwrap();
        assert_eq!(rig.ask_with("a.test", Arc::new(config)).await.unwrap(), "a.test h1 a.test");
    }
    let answer = rig.raw(&old_hello()).await;
    assert_eq!((answer.first(), answer.last()), (Some(&21), Some(&70)), "protocol_version: {answer:?}");
}

/// A TLS 1.1 hello.
fn old_hello() -> Vec<u8> {
    let mut hello = vec![3, 2];
    hello.extend([7; 32]);
    // Two cipher suites, no compression, and one signature algorithm.
    hello.extend([0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    let length = |n: usize| u8::try_from(n).unwrap();
    let mut record = vec![22, 3, 1, 0, length(hello.len() + 4), 1, 0, 0, length(hello.len())];
    record.extend(hello);
    record
}

#[tokio::test]
async fn http_2_is_agreed_on_by_alpn() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::of([pair(dir.path(), "a", &["a.test"])]).await;
    for (offered, agreed) in [(&["h2", "http/1.1"][..], "h2"), (&["http/1.1"], "h1"), (&[], "h1")] {
        let mut config = backend::trusting(&[&TLS13]).unwrap();
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let text = rig.ask_with("a.test", Arc::new(config)).await.unwrap();
        assert_eq!(text, format!("a.test {agreed} a.test"));
    }
}
