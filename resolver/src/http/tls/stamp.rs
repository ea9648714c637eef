//! Whether files are still the ones that were read.
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What the file system says about some files; equal as long as nobody wrote, replaced or removed one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<[i64; 5]>>);

impl Stamp {
    /// Taken before the files are read, so that a write during the reading is seen the next time.
    pub(super) fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let one = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            #[allow(clippy::cast_possible_wrap, reason = "compared, never computed with")]
            Some([meta.ino() as i64, meta.size() as i64, meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()])
        };
        Self(paths.into_iter().map(one).collect())
    }
}
