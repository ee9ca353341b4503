//! Whether the list of revoked certificates has changed since it was read.
//!
//! A site that reads the list only when it starts lets in who was revoked until somebody dares to stop it. So it looks once a second, which costs
//! one question to the file system; and since it is not told which connections a new list concerns, it ends them all: each proves anew who it is.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// A file, how it was, and when to look again.
pub(crate) struct Watch {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    pub(crate) at: Instant,
}

impl Watch {
    pub(crate) fn new(path: PathBuf, now: Instant) -> Self {
        Self { seen: state(&path), path, at: now + EVERY }
    }

    /// Whether the file is another than it was when it was looked at last. It says so once.
    pub(crate) fn has_changed(&mut self, now: Instant) -> bool {
        if now < self.at {
            return false;
        }
        self.at = now + EVERY;
        let state = state(&self.path);
        state != std::mem::replace(&mut self.seen, state)
    }
}

/// What changes with the file; nothing if it is not there.
fn state(path: &PathBuf) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
