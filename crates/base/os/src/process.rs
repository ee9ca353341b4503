//! What a supervisor and what it starts have in common: a lock on a directory, and an end in good order.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::open_file;

/// A file that one process at a time has locked. The kernel frees it when that process ends.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Makes the file if it is not there, and locks it; nothing if another process has it.
    ///
    /// # Errors
    /// If it cannot be made, or its file system has no locks.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = open_file(File::options().create(true).truncate(true).write(true), path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Best effort, for the kernel does it at the latest. A process that is just being started may have a copy of the file, so
        // closing it here might not free it.
        let _ = self.0.unlock();
    }
}

/// A flag that SIGTERM and SIGINT set, and SIGHUP: a terminal that closes ends what it shows in good order.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let hangup = (!ignores_hangup()).then_some(SIGHUP);
    for signal in [SIGTERM, SIGINT].into_iter().chain(hangup) {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Whether this process was started to outlive its terminal, as `nohup` does it: SIGHUP is ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1, SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_once_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = Lock::take(&path).unwrap();
        assert!(first.is_some());
        assert!(Lock::take(&path).unwrap().is_none());
        drop(first);
        assert!(Lock::take(&path).unwrap().is_some());
    }
}
