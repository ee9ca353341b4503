//! No two starts of one system at once: the lock, the nodes of an earlier start, and nodes that end with who started them.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::config::{Layout, SystemConfig};
use crate::{NodeError, NodeId};

/// How long nodes of an earlier start, whose supervisor was killed, may take to be gone.
const LEFTOVERS_MAX: Duration = Duration::from_secs(10);
/// Tells a node which process started it.
pub const PARENT: &str = "PARES_PARENT";

/// The lock of the system in that directory.
///
/// # Errors
/// If another supervisor has it.
pub(crate) fn take_lock(layout: &Layout) -> Result<File, NodeError> {
    let lock = File::create(layout.lock()).map_err(NodeError::io("creating the system's lock"))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        NodeError::Config(format!(
            "another `pares up` runs the system in {}; stop it, or use another --dir",
            layout.root().display()
        ))
    })?;
    Ok(lock)
}

/// Waits until no node of an earlier start is left. Killed with their supervisor they take a moment to be gone, and
/// until then could add to a log that [`begin`](crate::epoch::begin) has read.
pub(crate) fn await_leftovers(
    config: &SystemConfig,
    layout: &Layout,
    stop: &AtomicBool,
) -> Result<(), NodeError> {
    let begun = Instant::now();
    for role in NodeId::all(config) {
        // A log whose lock cannot be looked at is met again by whoever opens it.
        while let Ok(Some(process)) = pares_log::writing_process(&layout.log(role)) {
            check_not_stopped(stop)?;
            if begun.elapsed() > LEFTOVERS_MAX {
                return Err(NodeError::Config(format!(
                    "{role} of an earlier start still runs as process {process}; end it first"
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Breaks a start off.
pub(crate) fn check_not_stopped(stop: &AtomicBool) -> Result<(), NodeError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(NodeError::NotUp("it was told to stop".into())),
        false => Ok(()),
    }
}

/// Makes the kernel kill this process when its parent ends. Called by nodes as they start. A polite signal would
/// do for a running node, but one that is stopped (SIGSTOP) would stay behind; no node needs to tidy up.
///
/// # Errors
/// If the parent is gone already.
pub fn end_with_parent() -> Result<(), NodeError> {
    let starter = std::env::var(PARENT).ok().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
    let parent = starter.or_else(rustix::process::getppid);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| NodeError::io("binding the node to its parent")(error.into()))?;
    match rustix::process::getppid() == parent {
        true => Ok(()),
        false => Err(NodeError::Config("the parent process is gone".into())),
    }
}
