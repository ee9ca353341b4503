//! Devices that are slow or fail, under one recorder's log: for tests and drills only.
//!
//! A device cannot be made sick on request, least of all under one node of a machine. So a recorder can be told to treat its
//! own as if it were: the log then sleeps before each sync, or takes one of them for failed. What follows is real: a log that
//! is poisoned, a process that ends, a repair.
//!
//! ```text
//!  PARES_SLOW_SYNC_MS=50 pares node recorder-1      every sync takes 50 ms longer
//!  PARES_FAIL_SYNC_AT=37 pares node recorder-1      the 37th sync fails, as with a broken device
//! ```
//! Like a [crash point](crate::crash) it is read once, at the start, announced on standard error, and handed by a supervisor to
//! the one node and the one start it is meant for ([`crate::Supervisor::ail`]).

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use pares_log::Faults;

use crate::{NodeError, Role};

/// Milliseconds that every sync takes longer.
pub const SLOW: &str = "PARES_SLOW_SYNC_MS";
/// Which sync fails: 1 for the first.
pub const FAIL: &str = "PARES_FAIL_SYNC_AT";

/// What is wrong with a recorder's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// Every sync takes so many milliseconds longer.
    SlowSync(u32),
    /// That sync fails, 1 for the first; with `disk`, without which a recorder syncs nothing.
    FailingSync(u64),
}

impl Ailment {
    /// The variable that tells a node, and its value.
    pub(crate) fn variable(self) -> (&'static str, String) {
        match self {
            Self::SlowSync(ms) => (SLOW, ms.to_string()),
            Self::FailingSync(at) => (FAIL, at.to_string()),
        }
    }
}

static FAULTS: OnceLock<Arc<Faults>> = OnceLock::new();

/// What the log of this process is to suffer.
pub(crate) fn faults() -> Arc<Faults> {
    FAULTS.get().cloned().unwrap_or_default()
}

/// Reads the environment, and warns on standard error if it says anything.
///
/// # Errors
/// If it says what is no number, or says it to a node that is no recorder.
#[allow(clippy::print_stderr)] // a node's standard error is its log
pub(crate) fn arm_from_environment(role: Role) -> Result<(), NodeError> {
    let (slow_ms, fail_at) = (number(SLOW)?, number(FAIL)?);
    for (name, value) in [(SLOW, slow_ms), (FAIL, fail_at)] {
        let Some(value) = value else { continue };
        if !matches!(role, Role::Recorder(_)) {
            return Err(NodeError::Config(format!("{name} is for recorders, not for {role}")));
        }
        eprintln!("warning: {name}={value} is set: {role} has a sick device; this is for tests only");
    }
    let faults = Faults {
        slow_sync_ms: AtomicU32::new(u32::try_from(slow_ms.unwrap_or(0)).unwrap_or(u32::MAX)),
        syncs_to_failure: AtomicU64::new(fail_at.unwrap_or(0)),
        ..Faults::default()
    };
    // Only the first call counts, and a process starts one node.
    let _ = FAULTS.set(Arc::new(faults));
    Ok(())
}

fn number(name: &str) -> Result<Option<u64>, NodeError> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let number = text.parse().map_err(|_| NodeError::Config(format!("{name}={text} is no number")))?;
    Ok(Some(number))
}
