//! Virtual time: what is to happen, in order of time and, at one instant, of scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pares_gateway::{Reply, SessionId};
use pares_types::{Position, ShardId};

use crate::gateway::Input;
use crate::record::{NodeId, StoredCheckpoint};
use crate::world::faults::Fault;

/// Something that happens. `life` is that of the process concerned: what was meant for an earlier one is void.
#[derive(Debug)]
pub(crate) enum Action {
    /// A message of the link from `source` arrives.
    Message { source: NodeId, reader: NodeId, life: u32, from: u64, to: u64 },
    /// A reader asks `source` again for what is missing.
    Ask { source: NodeId, reader: NodeId, life: u32 },
    /// A duty cycle.
    Step { node: NodeId, life: u32 },
    /// A sync of the log below `to` is done.
    Synced { node: NodeId, life: u32, to: u64 },
    /// A recorder's helper thread has stored a checkpoint.
    Stored { recorder: usize, life: u32, checkpoint: StoredCheckpoint },
    /// The recorder hears of it.
    Heard { recorder: usize, life: u32, shard: ShardId, position: Position },
    /// A dead process starts.
    Start { node: NodeId, life: u32 },
    /// A stopped process goes on.
    Resume { node: NodeId, life: u32 },
    /// Everything is down: the next epoch begins.
    BeginEpoch,
    /// A client looks at what it has to do.
    Wake { client: usize },
    /// A gateway's clock is due.
    Tick { gateway: usize, life: u32 },
    /// Something from a client reaches its gateway.
    ToGateway { session: SessionId, input: Input },
    /// A reply reaches its client.
    ToClient { session: SessionId, reply: Reply },
    /// A client notices that its connection is gone.
    Broken { session: SessionId },
    /// The operator hears that a recorder's log is damaged.
    Noticed { recorder: usize, life: u32 },
    /// A full disk has room again.
    Room { node: NodeId },
    /// The operator stops everything to cut a poisoned log.
    Repair,
    /// Something goes wrong.
    Fault(Fault),
    /// Faults stop.
    Calm,
}

struct Entry {
    at_ns: u64,
    number: u64,
    action: Action,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.number) == (other.at_ns, other.number)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// What is to happen.
#[derive(Default)]
pub(crate) struct Queue {
    entries: BinaryHeap<Reverse<Entry>>,
    number: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at_ns: u64, action: Action) {
        self.entries.push(Reverse(Entry { at_ns, number: self.number, action }));
        self.number += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, Action)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.action))
    }
}
