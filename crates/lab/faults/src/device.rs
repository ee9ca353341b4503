//! Devices that are slow or fail, under one recorder's log.
//!
//! A device cannot be made sick on request, least of all under one node of a machine. So a recorder can be told to treat its
//! own as if it were: each sync of a segment takes longer, or one of them fails. What follows is real: a log that
//! is poisoned, a process that ends, a repair.
//!
//! ```text
//!  PARES_SLOW_SYNC_MS=50 pares-lab node recorder-1      every sync takes 50 ms longer
//!  PARES_FAIL_SYNC_AT=37 pares-lab node recorder-1      the 37th sync fails, as with a broken device
//! ```
//! Only syncs of segments count: those of marks and directories come with them.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pares_config::NodeId;
use pares_log::Device;

/// Milliseconds that every sync takes longer.
pub const SLOW: &str = "PARES_SLOW_SYNC_MS";
/// Which sync fails: 1 for the first.
pub const FAIL: &str = "PARES_FAIL_SYNC_AT";

/// What is wrong with a recorder's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// Every sync takes so many milliseconds longer.
    SlowSync(u32),
    /// That sync fails, 1 for the first; with `disk`, without which a recorder syncs nothing.
    FailingSync(u64),
}

impl DeviceFault {
    /// The variable that tells a node, and its value.
    #[must_use]
    pub fn variable(self) -> (&'static str, String) {
        match self {
            Self::SlowSync(ms) => (SLOW, ms.to_string()),
            Self::FailingSync(at) => (FAIL, at.to_string()),
        }
    }
}

/// A device that takes its time, or fails.
#[derive(Debug)]
pub(crate) struct Sick {
    slow_ms: u64,
    /// 0 for none.
    fail_at: u64,
    synced: AtomicU64,
}

impl fmt::Display for Sick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SLOW}={} {FAIL}={}", self.slow_ms, self.fail_at)
    }
}

impl Device for Sick {
    fn sync(&self, path: &Path, file: &File) -> io::Result<()> {
        if path.extension().is_some_and(|extension| extension == "seg") {
            std::thread::sleep(Duration::from_millis(self.slow_ms));
            if self.synced.fetch_add(1, Ordering::Relaxed) + 1 == self.fail_at {
                return Err(rustix::io::Errno::IO.into());
            }
        }
        file.sync_data()
    }
}

/// What the variables say.
///
/// # Errors
/// If they say what is no number, or say it to a node that is no recorder.
pub(crate) fn read(node: NodeId, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Sick>, String> {
    let number = |name: &str| {
        let Some(text) = variable(name) else { return Ok(None) };
        if !matches!(node, NodeId::Recorder(_)) {
            return Err(format!("{name} is for recorders, not for {node}"));
        }
        text.parse().map(Some).map_err(|_| format!("{name}={text} is not a number"))
    };
    let (slow_ms, fail_at): (Option<u64>, Option<u64>) = (number(SLOW)?, number(FAIL)?);
    if slow_ms.is_none() && fail_at.is_none() {
        return Ok(None);
    }
    let synced = AtomicU64::new(0);
    Ok(Some(Sick { slow_ms: slow_ms.unwrap_or(0), fail_at: fail_at.unwrap_or(0), synced }))
}
