//! Pipes that bulk is spliced through, and how much of the system they may take.
use crate::conn::descriptors::{Claim, Descriptors};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Wanted size, while all pipes together take no more than [`LARGE_IN_ALL`]; the system's own default after that.
const LARGE: usize = 1 << 20;
const LARGE_IN_ALL: usize = 32 << 20;
/// Smallest pipe that beats a plain copy.
const SMALL: usize = 64 << 10;
/// No pipes past this: an ordinary user's share of the system's pipe memory is 64 MiB.
const IN_ALL: usize = 48 << 20;

/// Where pipes come from.
#[derive(Debug, Clone)]
pub(super) struct Pipes(Arc<Descriptors>);
impl Pipes {
    pub(super) fn new(descriptors: &Arc<Descriptors>) -> Self {
        Self(Arc::clone(descriptors))
    }

    /// A pipe, if descriptors and memory for one are left.
    pub(super) fn make(&self) -> Option<Pipe> {
        let taken = self.0.pipe_bytes();
        if taken + SMALL > IN_ALL {
            return None;
        }
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        let claim = self.0.claim(2, &into)?;
        if taken + LARGE <= LARGE_IN_ALL {
            // Refused where the user has large pipes enough: the default size serves as well.
            let _ = fcntl_setpipe_size(&into, LARGE);
        }
        let size = fcntl_getpipe_size(&into).ok().filter(|size| *size >= SMALL)?;
        self.0.count_pipe(size);
        Some(Pipe { out, into, size, descriptors: Arc::clone(&self.0), _claim: claim })
    }
}

/// One pipe; counted until it is dropped.
#[derive(Debug)]
pub(super) struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    size: usize,
    descriptors: Arc<Descriptors>,
    _claim: Claim,
}
impl Pipe {
    /// Moves what `source` has and the empty pipe can take.
    pub(super) fn fill_from(&self, source: impl AsFd) -> io::Result<usize> {
        Ok(splice(source, None, &self.into, None, self.size, FLAGS)?)
    }
    /// The same, up to `most` bytes.
    pub(super) fn fill_at_most(&self, source: impl AsFd, most: usize) -> io::Result<usize> {
        Ok(splice(source, None, &self.into, None, self.size.min(most), FLAGS)?)
    }
    /// Moves up to `held` bytes on.
    pub(super) fn drain_to(&self, destination: impl AsFd, held: usize) -> io::Result<usize> {
        Ok(splice(&self.out, None, destination, None, held, FLAGS)?)
    }
}
impl Drop for Pipe {
    fn drop(&mut self) {
        self.descriptors.uncount_pipe(self.size);
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
