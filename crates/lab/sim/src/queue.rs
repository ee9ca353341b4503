//! Virtual time: what is to happen, in order of time and, at one instant, of scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pares_roles::NodeId;

use crate::world::faults::Fault;
use crate::world::feed::FeedAction;

/// Something that happens. `life` is that of the process concerned: what was meant for an earlier one is void.
#[derive(Debug)]
pub(crate) enum Action {
    /// A duty cycle. Of several planned for one process only the one with the latest number counts.
    Step { node: NodeId, life: u32, plan: u64 },
    /// A sync of the log below `to` is done.
    Synced { node: NodeId, life: u32, to: u64 },
    /// A task goes on.
    Task { number: u64, plan: u64 },
    /// A dead process starts.
    Start { node: NodeId, life: u32 },
    /// A stopped process goes on.
    Resume { node: NodeId, life: u32 },
    /// Everything is down: the next epoch begins.
    BeginEpoch,
    /// A client looks at what it has to do.
    Wake { client: usize },
    /// A member that comes by another protocol does.
    WakeGuest { guest: usize },
    /// Bytes from a client reach its gateway.
    ToGateway { connection: usize, bytes: Vec<u8> },
    /// The gateway learns that a client is gone.
    HangUp { connection: usize },
    /// Bytes reach a client.
    ToClient { connection: usize, bytes: Vec<u8> },
    /// A client notices that its connection is gone.
    Broken { connection: usize },
    /// A full disk has room again, or whatever else was short.
    Relief { node: NodeId },
    /// The operator stops everything to put something right.
    Repair,
    /// What was cut off is seen again.
    Heal { reader: NodeId, source: NodeId },
    /// Something happens to market data.
    Feed(FeedAction),
    /// Something goes wrong.
    Fault(Fault),
    /// Faults stop.
    Calm,
    /// Is all at rest?
    Look,
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
