use super::*;
use std::os::unix::net::UnixStream;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_socket_is_private_from_the_start_and_gone_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run/devmesh.sock");
    let socket = bind_socket(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert!(UnixStream::connect(&path).is_ok());
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "the socket and its lock, no staging directory: {names:?}");
    drop(socket);
    assert!(!path.exists());
}

#[tokio::test]
async fn an_existing_directory_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let _socket = bind_socket(&dir.path().join("s.sock")).unwrap();
    assert_eq!(mode(dir.path()), 0o755);
}

#[tokio::test]
async fn a_live_socket_is_left_alone_and_a_stale_one_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("devmesh.sock");
    let live = bind_socket(&path).unwrap();
    let text = bind_socket(&path).unwrap_err().to_string();
    assert_eq!(text, format!("another devmeshd is already listening on {}", path.display()));
    assert!(UnixStream::connect(&path).is_ok());
    std::mem::forget(live);
    drop(StdListener::bind(dir.path().join("other")).unwrap());
    fs::rename(dir.path().join("other"), &path).unwrap();
    assert!(UnixStream::connect(&path).is_err(), "stale");
    let fresh = bind_socket(&path).unwrap();
    assert!(UnixStream::connect(&path).is_ok());
    drop(fresh);
}

#[tokio::test]
async fn only_a_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("devmesh.sock");
    let refused = || bind_socket(&path).unwrap_err().to_string();
    let expected = format!("refusing to replace {}: existing path is not a Unix socket", path.display());
    fs::write(&path, "precious").unwrap();
    assert_eq!(refused(), expected);
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(dir.path().join("nowhere"), &path).unwrap();
    assert_eq!(refused(), expected);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(refused(), expected);
}

#[tokio::test]
async fn a_long_path_is_told_with_its_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d".repeat(100)).join("devmesh.sock");
    let text = bind_socket(&path).unwrap_err().to_string();
    assert!(text.contains("is too long: ") && text.contains(&format!("at most {MAX_PATH}")), "{text}");
    let left = MAX_PATH - dir.path().as_os_str().len() - 1;
    assert!(bind_socket(&dir.path().join("s".repeat(left))).is_ok(), "the longest name that fits works");
}

#[tokio::test]
async fn a_socket_that_is_no_longer_ours_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("devmesh.sock");
    let ours = bind_socket(&path).unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    let theirs = bind_socket(&path).unwrap();
    drop(ours);
    assert!(UnixStream::connect(&path).is_ok());
    drop(theirs);
}
