//! A mirror in memory: a log that has the bytes of another machine's.

use pares_config::NodeId;
use pares_log::{
    AppendError, Config, Durability, LogMirror, MirrorError, Offset, OpenError, check_stretch, next_place,
};

use super::host::Host;
use super::log::{HEADER, Log};
use super::machine::Machine;

/// The one writer of a mirror, in one process's hands.
#[derive(Debug)]
pub(crate) struct Mirror {
    host: Host,
    log: Log,
    /// The segment's pad has come.
    is_closed: bool,
}

impl Mirror {
    pub(super) fn open(
        host: &Host,
        machine: &Machine,
        node: NodeId,
        config: &Config,
        afresh: bool,
    ) -> Result<Self, OpenError> {
        let mut state = machine.lock();
        let there = state.logs.get(&node).cloned();
        if there.is_none() && config.wants_existing() {
            return Err(OpenError::Absent { dir: node.to_string().into() });
        }
        if there.as_ref().is_some_and(|log| !log.lock().is_mirror) {
            return Err(OpenError::NotAMirror { dir: node.to_string().into() });
        }
        let log = match there {
            Some(log) if !afresh => log,
            set_aside => {
                if set_aside.is_some_and(|log| log.lock().is_held) {
                    return Err(OpenError::Locked { dir: node.to_string().into(), pid: 0 });
                }
                let log = state.new_log(node, Durability::Os);
                {
                    let mut made = log.lock();
                    let first = config.begins_at().0;
                    let end = first + HEADER;
                    made.bytes.resize(end as usize, 0);
                    (made.is_mirror, made.released) = (true, first);
                    (made.synced, made.durable, made.written, made.tail) = (end, end, end, end);
                }
                state.logs.insert(node, log.clone());
                log
            }
        };
        drop(state);
        log.lock().open(Durability::Os)?;
        Ok(Self { host: host.clone(), log, is_closed: false })
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if self.host.is_current() {
            self.log.lock().is_held = false;
        }
    }
}

impl LogMirror for Mirror {
    fn next(&self) -> Offset {
        let log = self.log.lock();
        next_place(Offset(log.tail), log.segment_bytes, self.is_closed)
    }

    fn take(&mut self, from: Offset, stretch: &[u8]) -> Result<(), MirrorError> {
        if !self.host.passes() || self.host.is_full() {
            return Err(MirrorError::Append(AppendError::Full));
        }
        let next = self.next();
        let mut log = self.log.lock();
        log.check_poison().map_err(MirrorError::Append)?;
        let follows = if log.lies.mirror_has_gaps { from } else { next };
        let (scan, closes) = check_stretch(follows, log.segment_bytes, from, stretch)?;
        if from != next {
            // A defect: nothing lies in between.
            log.bytes.resize(from.0 as usize, 0);
            log.tail = from.0;
        } else if from.0 != log.tail {
            log.roll();
        }
        log.bytes.extend_from_slice(&stretch[..scan.position]);
        log.tail += scan.position as u64;
        self.is_closed = closes;
        Ok(())
    }

    fn publish(&mut self, durable: Offset) -> Offset {
        let mut log = self.log.lock();
        if self.host.is_current() {
            log.written = log.tail;
            let durable = if log.lies.mirror_is_durable { log.written } else { durable.0 };
            log.durable = durable.min(log.written).max(log.durable);
        }
        Offset(log.durable)
    }

    fn release_before(&mut self, offset: Offset) -> Offset {
        self.log.lock().release_before(offset.0)
    }
}
