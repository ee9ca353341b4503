//! No two starts of one system at once: the lock, the nodes of an earlier start, and nodes that end with who started them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_config::Layout;
use pares_os::process::Lock;
use rustix::process::{Pid, Signal};

use crate::world::complain;
use crate::{NodeError, NodeId};

/// How long nodes of an earlier start, whose supervisor was killed, may take to be gone.
const LEFTOVERS_MAX: Duration = Duration::from_secs(10);
/// One that is still there after this may be a node that nobody killed: the operator is informed.
const LEFTOVERS_QUIET: Duration = Duration::from_millis(500);
/// Who holds the lock of a system's directory.
pub const HOLDERS: &str = "pares up` or `pares mirror receive";
/// Tells a node which process started it.
pub(crate) const PARENT: &str = "PARES_PARENT";

/// The lock of the system in that directory, for `command`.
///
/// # Errors
/// If another supervisor has it, or it cannot be taken.
pub fn take_lock(layout: &Layout, command: &str) -> Result<Lock, NodeError> {
    let lock = Lock::take(&layout.lock());
    lock.map_err(NodeError::io("locking the system's directory (does its file system support locks?)"))?
        .ok_or_else(|| {
            NodeError::Refused(format!(
                "another `{command}` runs the system in {}; stop it, or use another --dir",
                layout.root().display()
            ))
        })
}

/// Refuses a directory that holds half of a system, or only its record.
pub(crate) fn refuse_unfinished(layout: &Layout) -> Result<(), NodeError> {
    let dir = layout.root().display();
    if pares_archive::is_unfinished(layout.root()) {
        return Err(NodeError::Refused(format!(
            "{dir} holds an unfinished restore: empty it and restore again"
        )));
    }
    if pares_archive::holds_days_only(layout.root()) {
        return Err(NodeError::Refused(format!(
            "{dir} was restored from archived days and can only be read: it has neither the gateways' logs \
             nor keys. `pares restore` makes a system from a backup"
        )));
    }
    Ok(())
}

/// Waits until no node of an earlier start is left. Killed with their supervisor they take a moment to be gone, and
/// until then could add to a log that a start has read.
///
/// # Errors
/// If one is not gone in ten seconds, or `stop` is set before.
pub fn await_leftovers(
    nodes: impl IntoIterator<Item = NodeId>,
    layout: &Layout,
    stop: &AtomicBool,
) -> Result<(), NodeError> {
    let begun = Instant::now();
    let mut told = false;
    for node in nodes {
        // A log whose lock cannot be looked at stops the node that opens it.
        while let Ok(Some(process)) = pares_log::writing_process(&layout.log(node)) {
            check_not_stopped(stop)?;
            let runs = format!("{node} of an earlier start is still running as process {process}");
            if begun.elapsed() > LEFTOVERS_MAX {
                return Err(NodeError::Refused(format!("{runs}; end it first")));
            }
            if !told && begun.elapsed() > LEFTOVERS_QUIET {
                complain(&format!("pares: {runs}; waiting up to {LEFTOVERS_MAX:?} for it to end"));
                told = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Breaks a start off.
///
/// # Errors
/// [`NodeError::BrokenOff`] if `stop` is set.
pub fn check_not_stopped(stop: &AtomicBool) -> Result<(), NodeError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(NodeError::BrokenOff),
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
        false => Err(NodeError::Refused("the parent process is gone".into())),
    }
}
