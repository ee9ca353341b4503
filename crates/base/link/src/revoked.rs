//! Whether the list of revoked certificates has changed since it was read.
//!
//! A site that reads the list only when it starts accepts a revoked peer until an operator dares to stop it. So it looks once a second, which
//! costs one question to the file system. A new list does not say which connections it concerns, so the site ends them all: each peer proves
//! again who it is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// A file, how it was, and when to look again.
pub(crate) struct Watch {
    path: PathBuf,
    /// Nothing if it is to be read whatever it is.
    seen: Option<State>,
    pub(crate) at: Instant,
}

impl Watch {
    pub(crate) fn new(path: PathBuf, now: Instant) -> Self {
        Self { seen: Some(state(&path)), path, at: now + EVERY }
    }

    /// Whether the file is another than it was when it was looked at last. It says so once.
    pub(crate) fn has_changed(&mut self, now: Instant) -> bool {
        if now < self.at {
            return false;
        }
        self.at = now + EVERY;
        let state = Some(state(&self.path));
        state != std::mem::replace(&mut self.seen, state)
    }

    /// It could not be read: the next look finds it changed.
    pub(crate) fn again(&mut self) {
        self.seen = None;
    }
}

/// What changes with the file; nothing if it is not there.
type State = Option<(SystemTime, u64)>;

fn state(path: &Path) -> State {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
