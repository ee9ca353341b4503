//! The recorders' logs merged into the one committed stream, as every reader does it for itself.

use std::rc::Rc;

use pares_recorder::Quorum;
use pares_types::{Position, RecorderId, ShardId};

use crate::log::Log;
use crate::record::{Record, RecorderEntry};

/// What one reader has read of the recorders' logs.
#[derive(Debug)]
pub(crate) struct CommittedStream {
    pub(crate) cursors: Vec<u64>,
    quorums: Vec<Quorum>,
}

/// What passes.
pub(crate) enum Committed<'a> {
    Result {
        recorder: usize,
        offset: u64,
        record: &'a Rc<Record>,
    },
    /// Nothing new: committed before, or not yet.
    Known,
    /// This recorder shows it, too few others do.
    Shown {
        record: &'a Rc<Record>,
    },
    CheckpointStored {
        shard: ShardId,
        position: Position,
        offset: u64,
    },
}

impl CommittedStream {
    pub(crate) fn new(shards: usize, recorders: usize, quorum: usize, cursors: Vec<u64>) -> Self {
        Self { cursors, quorums: vec![Quorum::new(recorders, quorum); shards] }
    }

    /// Starts a shard at a checkpoint.
    pub(crate) fn start_at(&mut self, shard: usize, position: Position) {
        self.quorums[shard].start_at(position);
    }

    /// All below is committed in that shard.
    pub(crate) fn committed(&self, shard: usize) -> Position {
        self.quorums[shard].committed()
    }

    /// How far into the recorders' logs this reader has come, of the most advanced.
    pub(crate) fn reach(&self) -> u64 {
        self.cursors.iter().copied().max().unwrap_or(0)
    }

    /// Reads each recorder's log up to `readable` and hands on what passes.
    pub(crate) fn poll(
        &mut self,
        logs: &[&Log<RecorderEntry>],
        readable: &[u64],
        mut on: impl FnMut(Committed<'_>),
    ) -> u64 {
        let mut read = 0;
        for (recorder, log) in logs.iter().enumerate() {
            let from = self.cursors[recorder];
            let to = log.whole_until(from, readable[recorder].max(from));
            for (offset, entry) in (from..to).zip(log.range(from, to)) {
                on(self.judge(recorder, offset, entry));
            }
            self.cursors[recorder] = to;
            read += to - from;
        }
        read
    }

    fn judge<'a>(&mut self, recorder: usize, offset: u64, entry: &'a RecorderEntry) -> Committed<'a> {
        match entry {
            RecorderEntry::Result(record) => {
                let quorum = &mut self.quorums[usize::from(record.shard().0)];
                let id = RecorderId(u16::try_from(recorder).expect("at most 8 recorders"));
                match quorum.on_record(id, record.position) {
                    true => Committed::Result { recorder, offset, record },
                    false if record.position < quorum.committed() => Committed::Known,
                    false => Committed::Shown { record },
                }
            }
            &RecorderEntry::CheckpointStored { shard, position } => {
                Committed::CheckpointStored { shard, position, offset }
            }
        }
    }
}
