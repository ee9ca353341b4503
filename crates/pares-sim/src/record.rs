//! What the logs hold, and who owns them.

use std::rc::Rc;

use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId};

/// A result as a venue hands it out and recorders pass it on, untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
    pub(crate) state_hash: Option<u64>,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

impl Record {
    pub(crate) fn shard(&self) -> ShardId {
        self.request.shard
    }
}

/// An entry of a venue's log.
#[derive(Clone, Debug)]
pub(crate) enum VenueEntry {
    Result(Rc<Record>),
    Piece(Piece),
}

/// A piece of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) shard: ShardId,
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
    /// Of the whole checkpoint; told with the last piece.
    pub(crate) total_bytes: Option<usize>,
    pub(crate) start: usize,
    pub(crate) bytes: Vec<u8>,
}

/// An entry of a recorder's log.
#[derive(Clone, Debug)]
pub(crate) enum RecorderEntry {
    Result(Rc<Record>),
    CheckpointStored { shard: ShardId, position: Position },
}

/// A checkpoint as a recorder stores it.
#[derive(Clone, Debug)]
pub(crate) struct StoredCheckpoint {
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
    /// Every record of the shard at `position` or later lies at this offset of the recorder's log or after it.
    pub(crate) replay_from: u64,
    pub(crate) state: Vec<u8>,
}

/// A process, in the order of the tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeId {
    Gateway(usize),
    Venue(usize),
    Recorder(usize),
}
