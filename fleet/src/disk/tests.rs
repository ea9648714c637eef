use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_replaced_file_is_owner_only_in_owner_only_directories() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/file.json");
    replace(&path, b"one").unwrap();
    publish(&path, b"two").unwrap();
    assert_eq!(read(&path, 10).unwrap().unwrap(), b"two");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.path().join("a")), 0o700);
    assert_eq!(mode(&home.path().join("a/b")), 0o700);
    assert_eq!(names(path.parent().unwrap()), ["file.json"]);
}

use WriteStep::{Created, DirectorySynced, Renamed, Synced, Written};
const STEPS: [WriteStep; 5] = [Created, Written, Synced, Renamed, DirectorySynced];

/// The three ways to write a file; where there is none yet for the second.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Replace,
    CreateNew,
    Publish,
}
const WAYS: [Way; 3] = [Way::Replace, Way::CreateNew, Way::Publish];

impl Way {
    fn steps(self) -> &'static [WriteStep] {
        if self == Way::Publish { &[Created, Written, Renamed] } else { &STEPS }
    }

    /// What is there before, if anything.
    fn before(self, path: &Path) {
        if self != Way::CreateNew {
            replace(path, b"old").unwrap();
        }
    }

    fn write(self, path: &Path, observe: Observer<'_>) -> Result<(), DiskError> {
        match self {
            Way::Replace => replace_observed(path, b"new", observe),
            Way::CreateNew => create_new_observed(path, b"new", observe).map(|created| assert!(created)),
            Way::Publish => publish_observed(path, b"new", observe),
        }
    }

    /// What a reader finds after a write that ended at `step`.
    fn after(self, step: WriteStep) -> Option<&'static [u8]> {
        match step {
            Renamed | DirectorySynced => Some(b"new"),
            _ if self == Way::CreateNew => None,
            _ => Some(b"old"),
        }
    }
}

#[test]
fn a_write_that_ends_at_any_step_leaves_the_old_or_the_new_content() {
    for (way, end) in WAYS.into_iter().flat_map(|way| way.steps().iter().map(move |step| (way, *step))) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        way.before(&path);
        let mut told = Vec::new();
        let error = way
            .write(&path, &mut |step| {
                told.push(step);
                assert_eq!(read(&path, 10).unwrap().as_deref(), way.after(step), "{way:?} {step:?}");
                if step == end { Err(std::io::Error::other("cut")) } else { Ok(()) }
            })
            .unwrap_err();
        assert!(way.steps().starts_with(&told) && told.last() == Some(&end), "{way:?}: {told:?}");
        assert_eq!(error.in_place(), matches!(end, Renamed | DirectorySynced), "{way:?} {end:?}");
        assert!(names(home.path()).iter().all(|name| name == "file"), "no temporary file stays behind");
    }
}

#[test]
fn a_writer_killed_at_any_step_leaves_the_old_or_the_new_content() {
    for (n, way) in WAYS.into_iter().enumerate() {
        for (m, step) in way.steps().iter().enumerate() {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("file");
            way.before(&path);
            let killed = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "disk::tests::child_is_killed_at_a_step", "--ignored"])
                .env("STADO_TEST_FILE", &path)
                .env("STADO_TEST_STEP", format!("{n} {m}"))
                .output()
                .unwrap();
            let signal = std::os::unix::process::ExitStatusExt::signal(&killed.status);
            assert_eq!(signal, Some(9), "{way:?} {step:?}: {killed:?}");
            assert_eq!(read(&path, 10).unwrap().as_deref(), way.after(*step), "{way:?} {step:?}");
            comes_back(home.path(), &path, matches!(step, Renamed | DirectorySynced));
        }
    }
}

/// After a killed writer the next write works, and what it left is removed once nobody can be using it.
fn comes_back(home: &Path, path: &Path, renamed: bool) {
    replace(path, b"next").unwrap();
    assert_eq!(read(path, 10).unwrap().unwrap(), b"next");
    sweep(path);
    assert_eq!(names(home).len(), if renamed { 1 } else { 2 }, "a young temporary file may be in use");
    for name in names(home) {
        let file = std::fs::File::options().write(true).open(home.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7200)).unwrap();
    }
    sweep(path);
    assert_eq!(names(home), ["file"]);
}

#[test]
#[ignore = "run by a_writer_killed_at_any_step_leaves_the_old_or_the_new_content"]
fn child_is_killed_at_a_step() {
    let path = PathBuf::from(std::env::var_os("STADO_TEST_FILE").unwrap());
    let numbers = std::env::var("STADO_TEST_STEP").unwrap();
    let numbers: Vec<usize> = numbers.split(' ').map(|n| n.parse().unwrap()).collect();
    let way = WAYS[numbers[0]];
    let end = way.steps()[numbers[1]];
    let _ = way.write(&path, &mut |step| {
        if step == end {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        Ok(())
    });
}

#[test]
fn what_a_killed_writer_left_is_swept_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, hours: u64| {
        let made = std::fs::File::create(home.path().join(name)).unwrap();
        made.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3600)).unwrap();
    };
    let foreign =
        [".state.json", ".state.json.toolong", ".state.json.a-b-cd", "state.json.AbCdEf", ".other.json.AbCdEf"];
    foreign.iter().for_each(|name| file(name, 5));
    std::fs::create_dir(home.path().join(".state.json.DirDir")).unwrap();
    symlink("/dev/null", home.path().join(".state.json.LinkLi")).unwrap();
    let kept = names(home.path());

    file(".state.json.AbCdE1", 5);
    file(".state.json.AbCdE2", 0);
    sweep(&home.path().join("state.json"));
    assert_eq!(names(home.path()).len(), kept.len() + 1, "a young one may be in use");
    sweep_locked(&home.path().join("state.json"));
    assert_eq!(names(home.path()), kept, "unless its only writer is gone");

    file(".db.local.AbCdEf", 5);
    file(".web.local.AbCdEf", 0);
    sweep_dir(home.path(), &|name| name.ends_with(".local"));
    assert_eq!(names(home.path()).len(), kept.len() + 1);
    // Only root can make a file of another user.
    let other = home.path().join(".state.json.OtherU");
    std::fs::write(&other, b"").unwrap();
    if std::os::unix::fs::chown(&other, Some(12345), None).is_ok() {
        sweep_locked(&home.path().join("state.json"));
        assert!(other.exists());
    }
}

#[test]
fn a_create_that_finds_another_file_leaves_it_at_every_step() {
    // Another process creates the file while this one is at each of its steps.
    for end in [Created, Written, Synced] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let created = create_new_observed(&path, b"mine", &mut |step| {
            if step == end { std::fs::write(&path, b"theirs") } else { Ok(()) }
        });
        assert!(!created.unwrap(), "{end:?}");
        assert_eq!(read(&path, 10).unwrap().unwrap(), b"theirs");
        assert_eq!(names(home.path()), ["file"]);
    }
}

#[test]
fn a_full_disk_loses_no_old_content() {
    // A file-size limit stands in for a full disk: the write of the temporary file fails in the same place.
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    replace(&path, b"old").unwrap();
    let status = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact disk::tests::child_writes_too_much --ignored")
        .arg(std::env::current_exe().unwrap())
        .env("STADO_TEST_FILE", &path)
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    assert_eq!(read(&path, 10).unwrap().unwrap(), b"old");
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
#[ignore = "run by a_full_disk_loses_no_old_content"]
fn child_writes_too_much() {
    let path = PathBuf::from(std::env::var_os("STADO_TEST_FILE").unwrap());
    assert!(!replace(&path, &vec![0; 1 << 20]).unwrap_err().in_place());
}

#[test]
fn create_new_never_replaces() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    assert!(create_new(&path, b"first").unwrap());
    assert!(!create_new(&path, b"second").unwrap());
    assert_eq!(read(&path, 10).unwrap().unwrap(), b"first");
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
fn a_staged_file_has_its_name_only_when_it_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/file");
    let staged = |pieces: &[&str]| {
        let mut staged = Staged::begin(&path).unwrap();
        pieces.iter().for_each(|piece| staged.write(piece.as_bytes()).unwrap());
        staged
    };
    drop(staged(&["half"]));
    assert_eq!(names(path.parent().unwrap()), Vec::<String>::new(), "nothing is left of it");
    assert!(staged(&["one", " ", "two"]).create_new().unwrap());
    assert!(!staged(&["other"]).create_new().unwrap());
    assert_eq!(read(&path, 20).unwrap().unwrap(), b"one two");
    staged(&["three"]).replace().unwrap();
    assert_eq!((read(&path, 20).unwrap().unwrap(), mode(&path)), (b"three".to_vec(), 0o600));
    assert_eq!(names(path.parent().unwrap()), ["file"]);
}

#[test]
fn read_tells_absence_from_refusal() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    assert!(read(&path, 10).unwrap().is_none());
    std::fs::write(&path, b"0123456789").unwrap();
    assert_eq!(read(&path, 10).unwrap().unwrap().len(), 10);
    assert!(read(&path, 9).unwrap_err().to_string().ends_with("it is larger than 9 bytes"));
    assert!(read(home.path(), 9).unwrap_err().to_string().ends_with("it is not a regular file"));
    let fifo = home.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(read(&fifo, 9).unwrap_err().to_string().ends_with("it is not a regular file"));
}

#[test]
fn a_link_is_followed_only_where_people_link() {
    let home = tempfile::tempdir().unwrap();
    let (file, link) = (home.path().join("file"), home.path().join("link"));
    std::fs::write(&file, b"x").unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(read(&link, 10).unwrap().unwrap(), b"x");
    assert!(read_unlinked(&link, 10).unwrap_err().to_string().ends_with("it is a symbolic link"));
    assert_eq!(read_unlinked(&file, 10).unwrap().unwrap(), b"x");
}

#[test]
fn only_this_user_and_root_are_trusted_owners() {
    assert!(read::trusted_owner(1000, 1000));
    assert!(read::trusted_owner(0, 1000));
    assert!(!read::trusted_owner(1001, 1000));
    assert!(!read::trusted_owner(1000, 0));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("file");
    std::fs::write(&path, b"x").unwrap();
    // Only root can make a file of another user.
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 12345);
        assert!(read(&path, 10).unwrap_err().to_string().contains("belongs to user 12345"));
    }
}

#[test]
fn set_aside_keeps_the_last_eight_and_no_duplicates() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state.json");
    let mut copies = Vec::new();
    for n in 0..12u8 {
        std::fs::write(&path, [n]).unwrap();
        copies.push(set_aside(&path).unwrap());
        assert_eq!(set_aside(&path).unwrap(), *copies.last().unwrap());
        if n < 8 {
            // Older copies, as if from earlier seconds.
            let old = home.path().join(format!("state.json.corrupt.{}", 1000 + u64::from(n)));
            std::fs::rename(copies.last().unwrap(), &old).unwrap();
        }
    }
    assert_eq!(mode(copies.last().unwrap()), 0o600);
    assert_eq!(std::fs::read(copies.last().unwrap()).unwrap(), [11]);
    assert_eq!(names(home.path()).len(), KEPT_ASIDE + 1);
    assert!(path.exists(), "the corrupt file itself stays until it is replaced");
}

/// A process that another test starts at this moment has a copy of the descriptor until its exec.
fn becomes_free(path: &Path) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while Lock::holder(path).unwrap().is_some() {
        assert!(std::time::Instant::now() < deadline, "the lock is still held");
        std::thread::yield_now();
    }
}

#[test]
fn a_lock_is_seen_by_probes_and_ends_with_its_holder() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x/state.lock");
    assert_eq!(Lock::holder(&path).unwrap(), None);
    let LockAttempt::Held(lock) = Lock::try_exclusive(&path, true).unwrap() else { panic!("free") };
    assert_eq!(mode(&path), 0o600);
    let me = std::process::id();
    assert_eq!(Lock::holder(&path).unwrap(), Some(Some(me)));
    assert!(matches!(Lock::try_exclusive(&path, true).unwrap(), LockAttempt::Busy { pid } if pid == Some(me)));
    let kept = Lock::adopt(lock.file().try_clone().unwrap());
    drop(lock);
    assert_eq!(Lock::holder(&path).unwrap(), Some(Some(me)), "the lock travels with the descriptor");
    drop(kept);
    becomes_free(&path);
    drop(Lock::exclusive(&path).unwrap());
}

#[test]
fn a_longer_old_pid_never_shows_through() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    std::fs::write(&path, b"99999999999\n").unwrap();
    let LockAttempt::Held(lock) = Lock::try_exclusive(&path, true).unwrap() else { panic!("free") };
    assert_eq!(Lock::holder(&path).unwrap(), Some(Some(std::process::id())));
    drop(lock);
}

#[test]
#[cfg(target_os = "linux")]
fn a_holder_that_wrote_no_pid_is_not_named_by_the_one_that_an_earlier_holder_left() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    // Of a process that is gone for sure.
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    std::fs::write(&path, format!("{}\n", gone.id())).unwrap();
    let LockAttempt::Held(lock) = Lock::try_exclusive(&path, false).unwrap() else { panic!("free") };
    let me = std::process::id();
    assert_eq!(Lock::holder(&path).unwrap(), Some(Some(me)));
    assert!(matches!(Lock::try_exclusive(&path, true).unwrap(), LockAttempt::Busy { pid } if pid == Some(me)));
    assert!(!Lock::names(&path, me) && Lock::names(&path, gone.id()));
    drop(lock);
    becomes_free(&path);
    assert_eq!(Lock::holder(&path).unwrap(), None);
}

#[test]
fn a_killed_holder_leaves_a_free_lock() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("lock");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "disk::tests::child_holds_a_lock", "--ignored"])
        .env("STADO_TEST_FILE", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while Lock::holder(&path).unwrap() != Some(Some(child.id())) {
        assert!(std::time::Instant::now() < deadline, "the child never took the lock");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    becomes_free(&path);
}

#[test]
#[ignore = "run by a_killed_holder_leaves_a_free_lock"]
fn child_holds_a_lock() {
    let path = PathBuf::from(std::env::var_os("STADO_TEST_FILE").unwrap());
    // A probe of the parent holds a shared lock for a moment: the one attempt that meets it is not the last.
    let _lock = loop {
        if let LockAttempt::Held(lock) = Lock::try_exclusive(&path, true).unwrap() {
            break lock;
        }
    };
    loop {
        std::thread::park();
    }
}
