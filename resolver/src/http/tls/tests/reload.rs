use super::support::{Rig, pair, wait_for};
use jiff::Timestamp;

#[tokio::test]
async fn a_certificate_is_read_again_when_its_file_changes() {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::of([pair(dir.path(), "a", &["a.test"])]).await;
    let before = rig.shown("a.test").await;
    pair(dir.path(), "a", &["a.test", "b.test"]);
    wait_for("the new certificate", async || rig.shown("a.test").await != before).await;
    assert_eq!(rig.ask("b.test").await.unwrap(), "b.test h1 a.test,b.test");
}

#[tokio::test]
async fn the_old_certificate_is_kept_if_the_new_one_does_not_load() {
    let dir = tempfile::tempdir().unwrap();
    let files = pair(dir.path(), "a", &["a.test"]);
    let rig = Rig::of([files.clone()]).await;
    let before = rig.shown("a.test").await;
    let problem = || rig.tls.status(Timestamp::now())[0].problem.clone().unwrap_or_default();
    std::fs::write(&files.cert, "half a certif").unwrap();
    wait_for("the problem is said", async || {
        assert_eq!(rig.shown("a.test").await, before);
        problem().contains("holds no certificate")
    })
    .await;
    assert!(problem().ends_with("; the one that was loaded before is served"), "{}", problem());
    std::fs::remove_file(&files.cert).unwrap();
    wait_for("its absence is said", async || {
        assert_eq!(rig.shown("a.test").await, before);
        problem().contains("no such file")
    })
    .await;
    // The certificate of one key with another, as between the two renames of a renewal.
    let other = pair(dir.path(), "b", &["a.test"]);
    std::fs::copy(&other.cert, &files.cert).unwrap();
    wait_for("the mismatch is said", async || {
        assert_eq!(rig.shown("a.test").await, before);
        problem().contains("does not belong")
    })
    .await;
    std::fs::copy(&other.key, &files.key).unwrap();
    wait_for("the whole renewal is served", async || rig.shown("a.test").await != before).await;
    assert_eq!(problem(), "");
}
