//! The writer of a log, in one process's hands.

use std::sync::MutexGuard;

use pares_log::{AppendError, LogSyncer, LogWriter, Offset};

use super::host::Host;
use super::lens::Lens;
use super::log::{Log, LogState};
use super::machine::Effect;

/// The one writer of a log in memory.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) host: Host,
    pub(super) log: Log,
    pub(super) lens: Lens,
    /// Of a tap: what is appended is no record of the node's.
    pub(super) is_tap: bool,
}

impl Writer {
    /// Whether the process lives; a dead one changes nothing.
    fn must_live(&self) -> Result<(), AppendError> {
        if self.host.passes() { Ok(()) } else { Err(AppendError::Full) }
    }

    /// The log, on a disk that is full or not.
    fn log(&self) -> MutexGuard<'_, LogState> {
        let full = self.host.is_full();
        let mut log = self.log.lock();
        log.is_full = full;
        log
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The simulator takes the log from a process that it killed.
        if self.host.is_current() {
            self.log.lock().is_held = false;
        }
    }
}

impl LogWriter for Writer {
    type Syncer = Syncer;

    fn append_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Offset, AppendError> {
        self.must_live()?;
        let mut payload = vec![0; len];
        fill(&mut payload);
        self.lens.hand_out(&mut payload);
        let offset = self.log().append_with(payload.len(), |bytes| bytes.copy_from_slice(&payload))?;
        if !self.is_tap {
            self.host.tell(Effect::Appended(self.host.node(), offset, payload));
        }
        Ok(offset)
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), AppendError> {
        self.must_live()?;
        self.log().reserve(bytes)
    }

    fn begin_segment(&mut self) -> Result<(), AppendError> {
        self.must_live()?;
        self.log().begin_segment()
    }

    fn publish(&mut self) -> Offset {
        if !self.host.passes() {
            return self.tail();
        }
        self.log.lock().publish()
    }

    fn sync(&mut self) -> Result<Offset, AppendError> {
        self.publish();
        self.syncer().sync_to_written()
    }

    fn syncer(&self) -> Syncer {
        Syncer { host: self.host.clone(), log: self.log.clone() }
    }

    fn release_before(&mut self, offset: Offset) -> Offset {
        self.log.lock().release_before(offset.0)
    }

    fn tail(&self) -> Offset {
        Offset(self.log.lock().tail)
    }

    fn durable(&self) -> Offset {
        let log = self.log.lock();
        Offset(if log.lies.durable_when_appended { log.tail } else { log.durable })
    }
}

/// Syncs a log in memory. The simulator's clock says when it is done.
#[derive(Debug)]
pub(crate) struct Syncer {
    host: Host,
    log: Log,
}

impl LogSyncer for Syncer {
    fn sync_to_written(&self) -> Result<Offset, AppendError> {
        if !self.host.passes() {
            return Err(AppendError::Poisoned { errno: 5 });
        }
        let takes_time = self.host.syncs_take_time();
        let mut log = self.log.lock();
        let written = log.written;
        if let Some(to) = log.begin_sync()? {
            if takes_time {
                drop(log);
                self.host.tell(Effect::Sync(self.host.node(), to));
            } else {
                log.end_sync(to);
            }
        }
        Ok(Offset(written))
    }
}
