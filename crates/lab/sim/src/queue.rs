//! What is to happen in a run.

use pares_config::NodeId;

use crate::Fault;
use crate::world::feed::FeedAction;

/// Something that happens. `life` is that of the process concerned: what was meant for an earlier one is void.
#[derive(Debug)]
pub(crate) enum Action {
    /// A duty cycle. Of several planned for one process only the one with the latest number counts.
    Step { node: NodeId, life: u32, plan: u64 },
    /// A sync of the log below `to` is done.
    Synced { node: NodeId, life: u32, to: u64 },
    /// A task continues.
    Task { number: u64, plan: u64 },
    /// A dead process starts.
    Start { node: NodeId, life: u32 },
    /// A stopped process continues.
    Resume { node: NodeId, life: u32 },
    /// Everything is down: the next epoch begins.
    BeginEpoch,
    /// A client looks at what it has to do.
    Wake { client: usize },
    /// A member that comes by another protocol does.
    WakeGuest { guest: usize },
    /// Bytes reach a gateway or a replayer.
    ToServer { server: NodeId, connection: usize, bytes: Vec<u8> },
    /// It learns that the caller is gone.
    HangUp { server: NodeId, connection: usize },
    /// Bytes reach a client.
    ToClient { connection: usize, bytes: Vec<u8> },
    /// A client notices that its connection is gone.
    Broken { connection: usize },
    /// A full disk has room again, or whatever else was short.
    Relief { node: NodeId },
    /// The operator stops everything to put something right.
    Repair,
    /// The command that moves a shard continues.
    MoveOn,
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
