use super::*;
use proptest::prelude::*;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;

const PATIENCE: Duration = Duration::from_secs(20);

fn pair() -> (Wire, Wire) {
    let (a, b) = UnixStream::pair().unwrap();
    (Wire::new(a), Wire::new(b))
}

/// A file that says which one it is.
fn marked(mark: usize) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(mark.to_string().as_bytes()).unwrap();
    file
}

fn mark_of(fd: OwnedFd) -> usize {
    let mut file = std::fs::File::from(fd);
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text.parse().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Messages of any size with any number of descriptors arrive whole, in order, each with its own descriptors.
    #[test]
    fn messages_keep_their_order_and_their_descriptors(
        messages in proptest::collection::vec((0usize..200_000, 0usize..12), 1..12),
    ) {
        runtime().block_on(async {
            let (mut from, mut to) = pair();
            let sent = messages.clone();
            let sending = tokio::spawn(async move {
                for (n, (size, count)) in sent.iter().enumerate() {
                    let files: Vec<_> = (0..*count).map(|k| marked(n * 100 + k)).collect();
                    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
                    from.send(&(n, "x".repeat(*size)), &fds).await.unwrap();
                }
            });
            for (n, (size, count)) in messages.iter().enumerate() {
                let ((at, text), fds) = to.receive::<(usize, String)>(PATIENCE).await.unwrap();
                assert_eq!((at, text.len(), fds.len()), (n, *size, *count));
                let marks: Vec<_> = fds.into_iter().map(mark_of).collect();
                assert_eq!(marks, (0..*count).map(|k| n * 100 + k).collect::<Vec<_>>());
            }
            sending.await.unwrap();
            assert!(matches!(to.receive::<()>(PATIENCE).await, Err(WireError::Ended)));
        });
    }

    /// Whatever comes instead of a message ends in an error, without a panic and without a wait.
    #[test]
    fn anything_else_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        runtime().block_on(async {
            let (a, b) = UnixStream::pair().unwrap();
            let (mut a, mut to) = (a, Wire::new(b));
            a.write_all(&bytes).await.unwrap();
            drop(a);
            assert!(to.receive::<Vec<String>>(PATIENCE).await.is_err());
        });
    }
}

#[tokio::test]
async fn a_full_batch_passes_and_more_is_refused_before_it_is_sent() {
    let (mut from, mut to) = pair();
    let file = marked(7);
    let fds = vec![file.as_fd(); BATCH + 1];
    from.send(&"full", &fds[..BATCH]).await.unwrap();
    let (text, got) = to.receive::<String>(PATIENCE).await.unwrap();
    assert_eq!((text.as_str(), got.len()), ("full", BATCH));
    assert!(matches!(from.send(&"more", &fds).await, Err(WireError::Strange(_))));
    from.send(&"after", &[]).await.unwrap();
    assert_eq!(to.receive::<String>(PATIENCE).await.unwrap().0, "after");
}

#[tokio::test]
async fn received_descriptors_are_not_inherited_by_programs_that_this_one_starts() {
    let (mut from, mut to) = pair();
    from.send(&(), &[marked(1).as_fd()]).await.unwrap();
    let (_, fds) = to.receive::<()>(PATIENCE).await.unwrap();
    assert!(rustix::io::fcntl_getfd(&fds[0]).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
}

#[tokio::test(start_paused = true)]
async fn silence_ends_with_its_deadline() {
    let (_from, mut to) = pair();
    let error = to.receive::<()>(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "the other process said nothing for 5s");
}

#[tokio::test]
async fn an_end_is_told_from_a_pause() {
    let (mut from, mut to) = pair();
    from.send(&1, &[]).await.unwrap();
    assert_eq!(to.receive::<u8>(PATIENCE).await.unwrap().0, 1);
    let soon = timeout(Duration::from_millis(50), to.ended()).await;
    assert!(soon.is_err(), "what was read before is no end");
    drop(from);
    timeout(PATIENCE, to.ended()).await.unwrap();
}
