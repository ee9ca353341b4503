//! The task that syncs a gateway's log, so that its duty cycle never waits for the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pares_config::{DurabilitySetting, SystemConfig};
use pares_log::{LogSyncer, LogWriter};
use pares_roles::NodeError;
use pares_roles::world::{Next, Waker, World};

/// Syncs the log in the background, whenever asked; several requests during one sync become one.
pub(crate) struct SyncTask {
    asked: Arc<AtomicBool>,
    waker: Waker,
}

impl SyncTask {
    /// Starts it, where what is taken in is to be on disk.
    pub(crate) fn start<W: World>(
        world: &W,
        writer: &W::Writer,
        config: &SystemConfig,
    ) -> Result<Option<Self>, NodeError> {
        if config.durability != DurabilitySetting::Disk {
            return Ok(None);
        }
        let asked = Arc::new(AtomicBool::new(false));
        let (syncer, seen) = (writer.syncer(), Arc::clone(&asked));
        let sync = move || match seen.swap(false, Ordering::AcqRel).then(|| syncer.sync_to_written()) {
            None => Next::Sleep,
            Some(Ok(_)) => Next::Again,
            // A failed sync poisons the log: the next append says so.
            Some(Err(_)) => Next::Done,
        };
        let waker = world.spawn("sync", Box::new(sync)).map_err(NodeError::io("starting a thread"))?;
        Ok(Some(Self { asked, waker }))
    }

    pub(crate) fn request(&self) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            (self.waker)();
        }
    }
}
