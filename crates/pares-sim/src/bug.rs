//! Defects on purpose: each breaks one rule of the wiring, to see that the checkers see it.

/// A defect of the wiring that the checkers must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Recorders promise records before they are synced.
    PromiseBeforeSync,
    /// Gateways answer from the first recorder that shows a record, whatever the quorum.
    AnswerBeforeQuorum,
    /// A venue's handle on the window swallows one decision.
    SwallowDecision,
    /// A recorder asks its peers only while a venue's record waits, never by itself.
    PeersOnlyOnWait,
    /// Recorders store checkpoints that reach beyond what is safe in their logs.
    CheckpointOfTheFuture,
    /// A new epoch starts behind what was published, though recorders keep records that were not.
    EpochFromPublished,
    /// A venue reads on in the gateways' logs however much is pending.
    ReadWithoutBound,
    /// A gateway forgets, at a restart, which of its sequences are recorded at fewer than a quorum.
    ReuseSequence,
    /// Slots say neither position nor epoch: a venue that slept believes what lies where its position once was.
    BareSlots,
    /// A venue takes for recorded what is decided: slots are used again while their decisions exist nowhere else.
    SlotsBeforeRecorded,
    /// A gateway tells *accepted* before its journal is written.
    AcceptBeforeWrite,
    /// A gateway answers what it has journalled, before anything is decided.
    AnswerBeforeDecision,
    /// A gateway gives each first answer twice.
    AnswerTwice,
    /// A venue that starts from a checkpoint forgets the names that were used.
    ForgetNames,
    /// Checkpoints lack an order.
    CheckpointWithoutAnOrder,
    /// A recorder takes a record though the one before it is missing.
    RecordAGap,
    /// All venues report trades a tick away from where they were made.
    WrongPrices,
    /// A gateway looks for an old answer where it lay, though that recorder came back with an empty log.
    BelieveOldPlaces,
    /// A recorder whose disk is full counts a record as taken though it was not written.
    TakeWithoutRoom,
    /// A recorder tries a failed sync again, and believes the second that has nothing left to write.
    BelieveFailedSync,
    /// One venue executes one order for a share too many. The simulator's own comparison of venues looks away: the
    /// recorders must find it.
    ExecuteWrongly,
    /// A venue hands results out as it executes, before it has vouched for them.
    HandOutUnvouched,
    /// A venue that is told that a position is void executes it all the same.
    ExecuteVoid,
    /// A venue whose engine failed at a position takes it for void, whatever the others say.
    VoidAlone,
    /// A venue that starts from a checkpoint forgets which instruments are quarantined.
    ForgetQuarantine,
    /// Recorders read on where they were in the log of a venue that came back with an empty disk.
    ReadOnInNewLog,
    /// A gateway that lost its log starts at once, in a running system.
    GatewayFromNothing,
    /// Readers believe what lies in a recorder's log, whatever its checksum.
    BelieveDamaged,
    /// A recorder cuts its damaged log at the damage.
    RepairByCutting,
    /// Recorders compare neither results nor state hashes of venues.
    IgnoreResults,
    /// A venue that restores a shard lets the others wait.
    StandStill,
    /// A venue whose engine failed at a request executes it again.
    ForgetSuspicion,
}
