//! A host's orders log: the requests in the order decided, with what is ordered written down now and then.
//!
//! ```text
//!   state | request | request | ... | state | request | ...
//! ```
//! A request's record is the gateway's, byte for byte; its position follows from the state before it and the requests between. So a reader begins
//! at a state, and so does the log, once its beginning is released.

use std::collections::VecDeque;

use pares_cluster::Beginning;
use pares_config::{NodeId, SystemConfig};
use pares_log::{AppendError, LogReader, LogWriter, Offset, ReadError};
use pares_orderer::message::{put_state, take_state};
use pares_orderer::{Ordered, Placed};
use pares_types::{Position, RequestId, ShardId};
use pares_wire::record::{ORDERS_STATE, RequestRecord, VERSION};

use crate::NodeError;
use crate::venue::log_config;
use crate::world::World;

/// Checkpoints' worth of requests between two states.
const STATE_EVERY: u64 = 4;
/// What the last so many states do not have yet, the replicated log keeps for hosts that are behind: a minute and a half at 5,000 requests a second.
const STATES_KEPT: usize = if cfg!(test) { 0 } else { 32 };

/// A state in the log.
struct Mark {
    offset: Offset,
    /// Of each shard the next position there.
    next: Vec<(ShardId, Position)>,
}

/// The writer of an orders log.
pub(super) struct OrdersLog<W: World> {
    writer: W::Writer,
    /// From the last state on whose past is recorded.
    marks: VecDeque<Mark>,
    /// The place in the replicated log of the last state, and whose it is.
    last: Option<(Beginning, StateOf)>,
    /// Requests behind the last state, and how many there are to be before the next.
    behind: u64,
    state_every: u64,
    /// The places of the last states in the replicated log.
    places: VecDeque<u64>,
}

/// Whose state it is: what this host has ordered, or what it took from another because it had missed something. Behind the latter the replicated
/// log begins again, *once*: what it has acknowledged since must never be forgotten. So a state of its own follows before it says anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateOf {
    Own = 0,
    Other = 1,
}

/// What was ordered and where, as far as the log says.
pub(super) type Behind = Vec<(ShardId, Position, RequestId)>;

impl<W: World> OrdersLog<W> {
    /// Opens the log of that node. Gives what is ordered, and the requests behind the log's first state.
    pub(super) fn open(
        world: &W,
        node: NodeId,
        config: &SystemConfig,
    ) -> Result<(Self, Ordered, Behind), NodeError> {
        let writer = world.write_log(node, log_config(config))?;
        let (marks, places) = (VecDeque::new(), VecDeque::new());
        let state_every = STATE_EVERY.saturating_mul(config.checkpoint_every);
        let mut log = Self { writer, marks, last: None, behind: 0, state_every, places };
        let (mut ordered, mut behind) = (Ordered::new(config.shards()?.into_keys()), Vec::new());
        let reader = match world.read_log_from_start(node) {
            Err(ReadError::NotYet { .. }) => return Ok((log, ordered, behind)),
            reader => reader?,
        };
        log.read(reader, &mut ordered, &mut behind)?;
        ordered.cover(config.shards()?.into_keys());
        Ok((log, ordered, behind))
    }

    fn read(
        &mut self,
        mut reader: W::Reader,
        ordered: &mut Ordered,
        behind: &mut Behind,
    ) -> Result<(), NodeError> {
        let mut has_past = reader.offset() == Offset::START;
        while let Some(record) = reader.next()? {
            if let Some(state) = record.payload.strip_prefix(&[ORDERS_STATE, VERSION]) {
                let (beginning, of, state) = read_state(state).ok_or(NO_STATE)?;
                if of == StateOf::Other {
                    // Between what is before it and what follows there is a gap, which the record fills.
                    behind.clear();
                }
                // Before its first state a released log has requests that are recorded.
                (*ordered, has_past) = (state, true);
                self.note(record.offset, (beginning, of), ordered);
                continue;
            }
            let request = RequestRecord::read(record.payload)?;
            self.behind += 1;
            if has_past && let Placed::At(position) = ordered.place(request.id, request.shard) {
                behind.push((request.shard, position, request.id));
            }
        }
        Ok(())
    }

    fn note(&mut self, offset: Offset, place: (Beginning, StateOf), ordered: &Ordered) {
        assert!(self.marks.back().is_none_or(|last| last.offset < offset), "a state follows the one before");
        let next = ordered.shards().filter_map(|shard| Some((shard, ordered.next(shard)?))).collect();
        self.marks.push_back(Mark { offset, next });
        let last = self.last.as_ref().map_or(0, |(beginning, _)| beginning.index);
        assert!(last <= place.0.index, "what is in a state is in all that follow");
        self.places.push_back(place.0.index);
        (self.last, self.behind) = (Some(place), 0);
    }

    /// Place and term in the replicated log up to which everything is in the last state.
    pub(super) fn applied(&self) -> (u64, u64) {
        self.last.as_ref().map_or((0, 0), |(beginning, _)| (beginning.index, beginning.term))
    }

    /// Where the replicated log is to begin again, if the last state is another host's.
    pub(super) fn copied(&self) -> Option<&Beginning> {
        let last = self.last.as_ref().filter(|(_, of)| *of == StateOf::Other);
        last.map(|(beginning, _)| beginning)
    }

    /// Up to where nobody will miss the entries of the replicated log.
    pub(super) fn outdated(&mut self) -> Option<u64> {
        assert!(self.places.iter().is_sorted(), "what is in a state is in all that follow");
        let count = self.places.len().checked_sub(STATES_KEPT + 1)?;
        self.places.drain(..count);
        let outdated = self.places.pop_front();
        assert_eq!(
            self.places.len(),
            STATES_KEPT,
            "what the last states lack is kept for hosts that are behind"
        );
        outdated
    }

    pub(super) fn append(&mut self, body: &[u8]) -> Result<(), AppendError> {
        self.behind += 1;
        self.writer.append(body).map(drop)
    }

    pub(super) fn publish(&mut self) {
        let end = self.writer.publish();
        assert_eq!(end, self.writer.tail(), "venues find the bodies of all that is put into a window");
    }

    /// Makes all of it survive a loss of power.
    pub(super) fn sync(&mut self) -> Result<(), AppendError> {
        self.writer.sync().map(drop)
    }

    /// Whether it is time to write down a state.
    pub(super) fn is_state_due(&self) -> bool {
        self.copied().is_some() || self.last.is_none() || self.behind >= self.state_every
    }

    /// Writes down what is ordered: by all that is in the log, or by another host.
    pub(super) fn put_state(
        &mut self,
        beginning: &Beginning,
        ordered: &Ordered,
        of: StateOf,
    ) -> Result<(), NodeError> {
        assert!(!beginning.members.voters.is_empty(), "a state is of a log that has members");
        let mut bytes = vec![ORDERS_STATE, VERSION, of as u8];
        put_state(&mut bytes, beginning, ordered);
        let offset = self.writer.append(&bytes)?;
        self.publish();
        self.note(offset, (beginning.clone(), of), ordered);
        Ok(())
    }

    /// Releases what lies before the last state before which everything is `recorded`. Says where that state is.
    pub(super) fn release(&mut self, recorded: impl Fn(ShardId) -> Position) -> Offset {
        let is_past = |mark: &Mark| mark.next.iter().all(|&(shard, next)| next <= recorded(shard));
        let past = self.marks.iter().take_while(|mark| is_past(mark)).count();
        if past > 1 {
            self.marks.drain(..past - 1);
            assert!(
                is_past(&self.marks[0]),
                "the log is released up to a state, all before which is recorded"
            );
            self.writer.release_before(self.marks[0].offset);
        }
        let answered = if past > 0 { self.marks[0].offset } else { Offset::START };
        assert!(answered <= self.writer.tail(), "who joins begins within the log");
        answered
    }
}

/// Place, owner and state of a record, behind its number and version.
fn read_state(bytes: &[u8]) -> Option<(Beginning, StateOf, Ordered)> {
    let (&of, state) = bytes.split_first()?;
    let of = [StateOf::Own, StateOf::Other].into_iter().find(|&known| known as u8 == of)?;
    let (beginning, ordered) = take_state(state)?;
    Some((beginning, of, ordered))
}

/// A record bears a state's number and is none.
const NO_STATE: pares_wire::WireError = pares_wire::WireError::InvalidField("state");
