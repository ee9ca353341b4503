//! What goes wrong in a run, and how often.

use std::collections::BTreeMap;

/// A kind of fault. Of each that happens the first is planned in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A venue dies and comes back.
    CrashVenue,
    /// A venue is stopped (SIGSTOP), briefly or for long.
    PauseVenue,
    /// All venues die at once.
    CrashVenues,
    /// A gateway dies and comes back.
    CrashGateway,
    /// A gateway is stopped.
    PauseGateway,
    /// A recorder dies and comes back.
    CrashRecorder,
    /// A recorder is stopped.
    PauseRecorder,
    /// A client's connection breaks; what was in flight is lost.
    Break,
    /// A process sees nothing new of another's log for a while.
    Cut,
    /// Everything is killed and started again: a new epoch.
    Restart,
    /// Power fails everywhere: what was not synced may be gone. A new epoch.
    Power,
    /// A gateway's disk is full for a while.
    FillGateway,
    /// A venue's disk is full for a while.
    FillVenue,
    /// A recorder's disk is full for a while.
    FillRecorder,
    /// A sync of a gateway or recorder fails: its log is poisoned until everything is stopped and the log cut.
    FailSync,
    /// A gateway's or recorder's disk takes milliseconds to sync for a while.
    SlowDisk,
    /// A recorder loses its disk and comes back with an empty one, if the others have enough without it.
    Wipe,
    /// A gateway's clock jumps some hours ahead or an hour back, or is set right.
    JumpClock,
    /// A venue's matching engine fails by itself.
    FailEngine,
    /// A venue loses its disk and comes back with an empty one.
    WipeVenue,
    /// A gateway loses its disk; it is back when everything has been stopped and started.
    WipeGateway,
    /// A record of a recorder's log becomes unreadable, or another is written over it.
    Rot,
    /// A bit of a venue's log flips.
    RotVenue,
    /// A bit of a gateway's log flips.
    RotGateway,
    /// A host has no more descriptors, or no more threads, for a while.
    Exhaust,
    /// One venue is started again as another build, whose rules differ.
    Upgrade,
    /// A publisher of market data dies and comes back.
    CrashPublisher,
    /// A publisher is stopped.
    PausePublisher,
    /// A replayer of market data dies and comes back.
    CrashReplayer,
    /// A replayer is stopped.
    PauseReplayer,
    /// A publisher's disk is full for a while.
    FillPublisher,
    /// A publisher loses its disk and comes back with an empty one.
    WipePublisher,
    /// A bit of a publisher's log flips.
    RotPublisher,
    /// A replayer's host has no more descriptors for a while.
    ExhaustReplayer,
    /// A subscriber's connection to a replayer breaks.
    BreakCall,
    /// A subscriber's program ends and starts again.
    RestartSubscriber,
    /// A stranger sends a subscriber and a replayer what no process should.
    Forge,
    /// An operator moves a shard to other venues, or continues a move that was left, or takes it back.
    MoveShard,
}

/// What goes wrong, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultMix {
    /// Mean times between two faults of a kind, ns; 0, or nothing, means never.
    pub every_ns: BTreeMap<Fault, u64>,
    /// Syncs that take milliseconds, of 1,000.
    pub slow_sync_permille: u64,
    /// Requests sent through two gateways at the same instant, of 1,000.
    pub twin_permille: u64,
    /// Requests after which a client also does what no client should, of 1,000.
    pub hostile_permille: u64,
    /// Deaths that leave the last record they find half written, of 1,000.
    pub torn_permille: u64,
    /// Orders that bring down every matching engine that executes them, of 1,000.
    pub poison_permille: u64,
    /// Only orders for the first so many shards do.
    pub poison_shards: usize,
}

impl FaultMix {
    /// The same, but for these mean times, ns.
    #[must_use]
    pub fn with(mut self, every_ns: impl IntoIterator<Item = (Fault, u64)>) -> Self {
        self.every_ns.extend(every_ns);
        self
    }

    /// The mean time between two faults of that kind, ns; 0 for never.
    pub(crate) fn every_ns(&self, fault: Fault) -> u64 {
        self.every_ns.get(&fault).copied().unwrap_or_default()
    }
}
