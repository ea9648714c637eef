use super::*;
use proptest::prelude::*;
use std::fs;

fn open(path: &Path) -> Result<Store<i64>, MeshError> {
    Store::open(path, "tcp_ports")
}

fn copies(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_string_lossy().contains(".corrupt.")).collect()
}

#[tokio::test]
async fn what_is_persisted_is_on_disk_and_changes_share_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/state.json");
    let store = open(&path).unwrap();
    let changes: Vec<Change> = (0..50).map(|turn| store.set(&format!("s{turn}"), Some(turn))).collect();
    for change in changes {
        store.persist(change).await.unwrap();
    }
    assert_eq!(open(&path).unwrap().entries().len(), 50);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    store.flush().await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before, "nothing new, nothing written");
}

#[tokio::test]
async fn a_corrupt_file_is_copied_and_stays_until_the_next_save() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    fs::write(&path, "{\"tcp_ports\": tru").unwrap();
    let store = open(&path).unwrap();
    assert!(store.entries().is_empty());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"tcp_ports\": tru");
    assert_eq!(fs::read_to_string(&copies(dir.path())[0]).unwrap(), "{\"tcp_ports\": tru");
    store.persist(store.set("a", Some(1))).await.unwrap();
    assert_eq!(open(&path).unwrap().get("a"), Some(1));
    assert_eq!(copies(dir.path()).len(), 1);
}

#[test]
fn a_newer_file_refuses_the_start_and_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    fs::write(&path, r#"{"version":2,"tcp_ports":{"a":1}}"#).unwrap();
    let text = open(&path).unwrap_err().to_string();
    assert_eq!(
        text,
        format!("state file {} has unsupported version 2 (want <= 1); refusing to overwrite", path.display())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"version":2,"tcp_ports":{"a":1}}"#);
    assert!(copies(dir.path()).is_empty());
}

#[test]
fn an_empty_file_and_none_are_an_empty_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    assert!(open(&path).unwrap().entries().is_empty());
    fs::write(&path, "").unwrap();
    assert!(open(&path).unwrap().entries().is_empty());
    assert!(copies(dir.path()).is_empty());
}

#[tokio::test]
async fn a_failed_write_is_made_up_for_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.json");
    let store = open(&path).unwrap();
    // A directory in the file's place refuses the rename, for root too.
    fs::create_dir(&path).unwrap();
    let change = store.set("a", Some(1));
    assert!(store.persist(change).await.is_err());
    fs::remove_dir(&path).unwrap();
    store.flush().await.unwrap();
    assert_eq!(open(&path).unwrap().get("a"), Some(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Arbitrary bytes never panic, and whatever they were is still there afterwards: as they were, or as a copy.
    #[test]
    fn arbitrary_files_lose_nothing(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..200),
        "\\{\"version\":[0-9.]{1,3},\"tcp_ports\":\\{\"[a-z]\":[0-9e.]{1,4}[,}]{1,2}\\}?".prop_map(String::into_bytes),
    ]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        fs::write(&path, &bytes).unwrap();
        let opened = open(&path);
        prop_assert_eq!(&fs::read(&path).unwrap(), &bytes);
        if let Ok(store) = opened && Document::<i64>::parse("tcp_ports", &bytes).is_err() {
            prop_assert_eq!(&fs::read(&copies(dir.path())[0]).unwrap(), &bytes);
            drop(store);
        }
    }
}
