//! Catching up in the background.
//!
//! A node that replays to catch up could keep a core busy for milliseconds, on a machine that has two. At a
//! lower priority it takes what the live nodes leave. Raising the priority again afterwards needs a privilege, so
//! without it nothing is lowered either: catching up fast beats staying slow for ever.

use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process};

const BACKGROUND: i32 = 10;

/// A process at background priority, until this is dropped.
pub(crate) struct Background {
    before: i32,
}

impl Background {
    /// Lowers the priority of this thread, if it can be raised again.
    pub(crate) fn enter() -> Option<Self> {
        let before = getpriority_process(None).ok()?;
        // The limit is given as 20 - nice; the superuser is above it.
        let floor = 20 - getrlimit(Resource::Nice).current.map_or(40, |limit| limit.min(40) as i32);
        let may_return = rustix::process::geteuid().is_root() || before >= floor;
        (may_return && before < BACKGROUND && setpriority_process(None, BACKGROUND).is_ok())
            .then_some(Self { before })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Checked on entering; if it fails all the same the node is slower, not wrong.
        let _ = setpriority_process(None, self.before);
    }
}
