//! A log in memory that is to take the place of a damaged one.

use std::path::{Path, PathBuf};

use pares_config::NodeId;
use pares_log::{AppendError, Durability, LogReplacement, Offset, OpenError};

use super::host::Host;
use super::log::Log;
use super::machine::Machine;
use super::reader::Salvage;

/// A log being made. Dropped before it is complete, it changes nothing.
#[derive(Debug)]
pub(crate) struct Replacement {
    host: Host,
    machine: Machine,
    node: NodeId,
    old: Log,
    new: Log,
    is_complete: bool,
}

impl Replacement {
    pub(super) fn begin(
        host: &Host,
        machine: &Machine,
        node: NodeId,
        durability: Durability,
    ) -> Result<Self, OpenError> {
        let mut state = machine.lock();
        let found = state.logs.get(&node).cloned();
        let what = "there is no log";
        let old = found.ok_or(OpenError::Foreign { path: node.to_string().into(), what })?;
        let new = state.new_log(node, durability);
        drop(state);
        if std::mem::replace(&mut old.lock().is_held, true) {
            return Err(OpenError::Locked { dir: node.to_string().into(), pid: 0 });
        }
        Ok(Self { host: host.clone(), machine: machine.clone(), node, old, new, is_complete: false })
    }

    fn dir(&self) -> PathBuf {
        PathBuf::from(self.node.to_string())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.is_complete {
            return;
        }
        let unfinished = self.dir().join("repair");
        self.machine.lock().files.remove_all(&unfinished);
        self.old.lock().is_held = false;
    }
}

impl LogReplacement for Replacement {
    type Salvage = Salvage;

    fn promised(&self) -> Offset {
        let old = self.old.lock();
        Offset(if old.lost_power { old.synced } else { old.synced.max(old.durable) })
    }

    fn damaged(&self) -> Result<Salvage, OpenError> {
        self.host.passes();
        Ok(Salvage::below(self.old.clone(), u64::MAX))
    }

    fn append(&mut self, payload: &[u8]) -> Result<Offset, AppendError> {
        self.host.passes();
        self.new.lock().append_with(payload.len(), |bytes| bytes.copy_from_slice(payload))
    }

    fn tail(&self) -> Offset {
        Offset(self.new.lock().tail)
    }

    fn complete(mut self) -> Result<PathBuf, OpenError> {
        self.host.passes();
        {
            let mut new = self.new.lock();
            let end = new.tail;
            (new.written, new.durable, new.synced) = (end, end, end);
        }
        let mut state = self.machine.lock();
        state.logs.insert(self.node, self.new.clone());
        let dir = self.dir();
        let moved = [("checkpoints", "damaged/checkpoints"), ("repair/checkpoints", "checkpoints")];
        for (from, to) in moved {
            // Where there were none there is nothing to move.
            let _ = state.files.rename(&dir.join(from), &dir.join(to));
        }
        state.files.remove_all(&dir.join("repair"));
        state.files.sync_dir(&dir.join("checkpoints"));
        drop(state);
        self.is_complete = true;
        Ok(Path::new("memory").join(dir).join("damaged"))
    }
}
