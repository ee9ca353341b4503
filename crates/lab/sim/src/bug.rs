//! Defects on purpose: each breaks one thing that the roles stand on, to see that the checkers see it.

/// A defect of the world under the roles that the checkers must catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A recorder's log calls durable what is published, and syncs nothing.
    PromiseBeforeSync,
    /// Gateways receive a quorum of one, whatever it is.
    AnswerBeforeQuorum,
    /// Gateways receive no target for waits: the number of what is in flight is the only bound.
    AdmitByNumber,
    /// Gateways read only now and then what the first member who came asks.
    ReadSeldom,
    /// A venue's handle on the window swallows one decision.
    SwallowDecision,
    /// Recorders do not find each other's logs.
    HidePeers,
    /// Slots say neither position nor epoch: a venue that slept believes what lies where its position once was.
    BareSlots,
    /// The window takes for recorded what is decided: slots are used again while their decisions exist nowhere else.
    SlotsBeforeRecorded,
    /// A gateway's log calls durable what is only appended.
    AcceptBeforeWrite,
    /// Checkpoints lack an order.
    CheckpointWithoutAnOrder,
    /// All venues report trades a tick away from where they were made.
    WrongPrices,
    /// A recorder's full disk calls appended what it refused.
    TakeWithoutRoom,
    /// A recorder's device calls done a sync that failed.
    BelieveFailedSync,
    /// One venue reads one order for a share too many. The simulator's own comparison of venues looks away: the
    /// recorders must find it.
    ExecuteWrongly,
    /// The window vouches for whatever a venue has executed.
    HandOutUnvouched,
    /// The window tells nobody that a position is void.
    ExecuteVoid,
    /// The window reports a position as void to the venue whose engine failed there, and not to the others.
    VoidAlone,
    /// Readers never notice that another log lies in a venue's place.
    ReadOnInNewLog,
    /// Readers believe what lies in a log, whatever its checksum.
    BelieveDamaged,
    /// Gateways do not see the first fill of some records.
    LeaveFillsOut,
    /// Gateways read of a revoked key that it stays.
    OverlookRevocation,
    /// Venues read that whatever a session enters through its gateway, then or later, is to be cancelled.
    CancelWhatComes,
    /// Venues read that next to nothing of what a session left is to be cancelled.
    CancelTooLittle,
    /// Checkpoints lack the floors of names that were forgotten.
    ForgetNames,
    /// All recorders but the first take results of the exchange without the end of the business day in them.
    CloseDaysAlone,
    /// All venues report the end of a business day without its last day order.
    ForgetDayOrders,
    /// Publishers' packets are numbered by how many messages were sent in this life.
    NumberByThisLife,
    /// Publishers receive a quorum of one, whatever it is.
    PublishBeforeQuorum,
    /// Subscribers show as current what lacks messages.
    ShowGaps,
    /// Snapshots continue a message too late.
    SkipAfterSnapshot,
    /// A replayer's answers have each message under its neighbour's number.
    AnswerWithNeighbour,
    /// A publisher's log holds a message of another past after its death, and the checksum by which it would notice says nothing.
    KeepAnotherPast,
    /// Gateways read of FIX sessions that only a few numbers may have gone out.
    ShortMarks,
    /// Gateways read of FIX sessions that all that was sent has been read.
    BelieveAllRead,
    /// Gateways read of FIX sessions that places are in their own members' streams.
    ForgetCopied,
    /// What an OUCH session receives in one go lacks its second packet.
    LeavePacketOut,
    /// Orders that come by OUCH are named by the clock at which they come.
    NameByClock,
    /// A server over HTTP repeats under a new name what a lost connection has left open.
    RepeatUnderNewName,
    /// A server over HTTP gives the answer to another one of those who wait.
    AnswerAnother,
    /// A server over HTTP answers a repeat of what was done with a refusal.
    RefuseWhatWasDone,
    /// A server over HTTP forgets which mass cancels it has answered, and refuses their repeats for their names.
    ForgetMassCancels,
    /// A server over HTTP leaves questions unanswered.
    LeaveQuestions,
    /// A server over HTTP tells nobody the first report that comes after it has lost a gateway.
    SkipAfterLoss,
    /// Orders that come by FIX as fill-or-kill are read as immediate-or-cancel.
    MisreadTimeInForce,
    /// Cancel rejects by FIX never say that they may be known.
    UnmarkRejects,
    /// FIX reports what was refused at once as a new order.
    AcceptRefused,
    /// Of those that were, FIX tells the last trade only: as from the live place, and not from the oldest.
    LeaveTradesOut,
    /// The last trade of those that were does not say by FIX that it is.
    NeverLast,
    /// Strangers that call by FIX receive a Logon.
    GreetStrangers,
    /// Member servers receive a quorum of one, whatever it is.
    TellBeforeQuorum,
    /// A member server that is behind the window proposes all the same.
    ProposeBeforeFilled,
    /// A member server whose disk was lost numbers what is submitted as in its first life.
    KeepLife,
    /// What a member's stream is called never changes, whatever of it is lost.
    KeepStream,
    /// Recorders read that venues have come to a shard which they are about to restore.
    VoteBeforeComing,
    /// Who moves a shard reads of every node that it follows.
    MoveUnfollowed,
    /// Traders submit everything once only.
    SayOnce,
    /// Who is sent entries of the hosts' order takes them for committed.
    PlaceProposed,
    /// States in orders logs say of no gateway what of it is ordered.
    ForgetSequences,
    /// Mirrors are as durable as they are written.
    MirrorsAreDurable,
    /// Mirrors take what comes, whether it follows or not.
    MirrorsHaveGaps,
    /// Readers find the log of their own host's recorder in the place of each other one.
    CountOwnTwice,
}
