//! What goes wrong in a run, and how often.

/// What goes wrong, and how often. Rates are mean times between two faults of a kind, ns; 0 means never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultMix {
    /// Syncs that take milliseconds, of 1,000.
    pub slow_sync_permille: u64,
    /// A venue dies and comes back.
    pub venue_crash_ns: u64,
    /// A venue is stopped (SIGSTOP), briefly or for long.
    pub venue_pause_ns: u64,
    /// All venues die at once.
    pub venues_crash_ns: u64,
    /// A gateway dies and comes back.
    pub gateway_crash_ns: u64,
    /// A gateway is stopped.
    pub gateway_pause_ns: u64,
    /// A recorder dies and comes back.
    pub recorder_crash_ns: u64,
    /// A recorder is stopped.
    pub recorder_pause_ns: u64,
    /// A client's connection breaks; what was in flight is lost.
    pub break_ns: u64,
    /// A process sees nothing new of another's log for a while.
    pub cut_ns: u64,
    /// Everything is killed and started again: a new epoch.
    pub restart_ns: u64,
    /// Power fails everywhere: what was not synced may be gone. A new epoch.
    pub power_ns: u64,
    /// Requests sent through two gateways at the same instant, of 1,000.
    pub twin_permille: u64,
    /// A gateway's disk is full for a while.
    pub gateway_full_ns: u64,
    /// A venue's disk is full for a while.
    pub venue_full_ns: u64,
    /// A recorder's disk is full for a while.
    pub recorder_full_ns: u64,
    /// A sync of a gateway or recorder fails: its log is poisoned until everything is stopped and the log cut.
    pub sync_failure_ns: u64,
    /// A gateway's or recorder's disk takes milliseconds to sync for a while.
    pub slow_disk_ns: u64,
    /// A recorder loses its disk and comes back with an empty one, if the others have enough without it.
    pub wipe_ns: u64,
    /// A venue loses its disk and comes back with an empty one.
    pub venue_wipe_ns: u64,
    /// A gateway loses its disk; it is back when everything has been stopped and started.
    pub gateway_wipe_ns: u64,
    /// A record of a recorder's log becomes unreadable, or another is written over it.
    pub rot_ns: u64,
    /// A bit of a venue's log flips.
    pub venue_rot_ns: u64,
    /// A bit of a gateway's log flips.
    pub gateway_rot_ns: u64,
    /// A host has no more descriptors, or no more threads, for a while.
    pub exhaust_ns: u64,
    /// Requests after which a client also does what no client should, of 1,000.
    pub hostile_permille: u64,
    /// One venue is started again as another build, whose rules differ.
    pub other_build_ns: u64,
    /// A gateway's clock jumps some hours ahead or an hour back, or is set right.
    pub clock_jump_ns: u64,
    /// Deaths that leave the last record they find half written, of 1,000.
    pub torn_permille: u64,
    /// Orders that bring down every matching engine that executes them, of 1,000.
    pub poison_permille: u64,
    /// Only orders for the first so many shards do.
    pub poison_shards: usize,
    /// A venue's matching engine fails by itself.
    pub engine_failure_ns: u64,
    /// A publisher of market data dies and comes back.
    pub publisher_crash_ns: u64,
    /// A publisher is stopped.
    pub publisher_pause_ns: u64,
    /// A publisher's disk is full for a while.
    pub publisher_full_ns: u64,
    /// A publisher loses its disk and comes back with an empty one.
    pub publisher_wipe_ns: u64,
    /// A bit of a publisher's log flips.
    pub publisher_rot_ns: u64,
    /// A replayer of market data dies and comes back.
    pub replayer_crash_ns: u64,
    /// A replayer is stopped.
    pub replayer_pause_ns: u64,
    /// A replayer's host has no more descriptors for a while.
    pub replayer_exhaust_ns: u64,
    /// A subscriber's connection to a replayer breaks.
    pub call_break_ns: u64,
    /// A subscriber's program ends and starts again.
    pub subscriber_restart_ns: u64,
    /// Somebody sends a subscriber and a replayer what nobody should.
    pub forge_ns: u64,
}
