//! What comes of a shard's steps: results, how far it got, and why no further.

use pares_types::{Epoch, Event, Outcome, Position, Request, RequestId, ShardId};

/// Where a shard's effects go.
pub trait VenueSink {
    /// Whether the next results can be taken; asked before anything is executed, so that no result is
    /// ever lost to a full disk.
    fn has_room(&mut self) -> bool;

    /// A long task continues: others may have the processor.
    fn give_way(&mut self) {}

    /// The request is about to be executed. If the matching engine fails at it, this call is the last that names it.
    fn executing(&mut self, shard: ShardId, position: Position, request: &Request) {
        let _ = (shard, position, request);
    }

    /// It is executed.
    fn executed(&mut self) {}

    /// A result for the recorders. `state_hash` is given at every [`HASH_EVERY`](pares_types::HASH_EVERY)th position. Results of a [`Shard::step`](crate::Shard::step) are
    /// not to be handed out before it has returned, and not at all if it was [overruled](Stall::Overruled).
    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]);
}

/// Where in the total order a result belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultAt {
    /// The shard.
    pub shard: ShardId,
    /// The life of the window that decided it.
    pub epoch: Epoch,
    /// The place in the shard's total order.
    pub position: Position,
    /// The state after it, where one is due.
    pub state_hash: Option<u64>,
}

/// What a [`Shard::step`](crate::Shard::step) achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Positions executed.
    pub executed: u64,
    /// Positions claimed by this venue's own proposals, before any other venue's.
    pub won: u64,
    /// Why it went no further; `None` if all that was pending is done.
    pub stall: Option<Stall>,
}

/// Why a shard cannot continue by itself right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// A request is decided whose body has not come yet; it lies in its gateway's log.
    AwaitsBody(RequestId),
    /// The recorders are a whole window behind; nothing may be decided until they record.
    WindowFull,
    /// The window has moved on (soft failure): the committed stream leads back.
    TooFarBehind,
    /// A newer life of the window exists: this process is a leftover and must end.
    EpochOver,
    /// The sink has no room.
    NoRoom,
    /// A position was executed here that another venue had declared void meanwhile: nothing of this step may be handed
    /// out, and the shard is to be restored from the record.
    Overruled(Position),
    /// This venue failed at the next position ([`Shard::suspect`](crate::Shard::suspect)), and another has executed it, or it cannot be
    /// declared void: only a checkpoint beyond it leads on.
    Stuck(Position),
}
