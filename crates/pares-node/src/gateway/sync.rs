//! The thread that syncs a gateway's log, so that its duty cycle never waits for the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pares_log::Writer;
use pares_shm::scheduling;

use crate::NodeError;

/// Syncs the log in the background, whenever asked; several requests during one sync become one.
pub(super) struct SyncThread {
    asked: Arc<AtomicBool>,
    thread: std::thread::Thread,
}

impl SyncThread {
    pub(super) fn start(writer: &Writer) -> Result<Self, NodeError> {
        let asked = Arc::new(AtomicBool::new(false));
        let (syncer, seen) = (writer.syncer(), Arc::clone(&asked));
        let sync = move || {
            scheduling::ordinary();
            loop {
                if seen.swap(false, Ordering::AcqRel) {
                    // A failed sync poisons the log: the next append says so.
                    if syncer.sync_to_written().is_err() {
                        return;
                    }
                } else {
                    std::thread::park();
                }
            }
        };
        let handle = std::thread::Builder::new()
            .name("sync".into())
            .spawn(sync)
            .map_err(NodeError::io("starting a thread"))?;
        Ok(Self { asked, thread: handle.thread().clone() })
    }

    pub(super) fn request(&self) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}
