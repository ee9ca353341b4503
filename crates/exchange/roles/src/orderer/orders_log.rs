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

/// Bytes of the log between two states.
const STATE_EVERY: u64 = 1 << 20;

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
    /// Place and term in the replicated log of the last state.
    applied: (u64, u64),
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
        let mut log = Self { writer, marks: VecDeque::new(), applied: (0, 0) };
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
                let (beginning, state) = take_state(state).ok_or(NO_STATE)?;
                // Before its first state a released log has requests that are recorded.
                (*ordered, has_past) = (state, true);
                self.note(record.offset, &beginning, ordered);
                continue;
            }
            let request = RequestRecord::read(record.payload)?;
            if has_past && let Placed::At(position) = ordered.place(request.id, request.shard) {
                behind.push((request.shard, position, request.id));
            }
        }
        Ok(())
    }

    fn note(&mut self, offset: Offset, beginning: &Beginning, ordered: &Ordered) {
        let next = ordered.shards().filter_map(|shard| Some((shard, ordered.next(shard)?))).collect();
        self.marks.push_back(Mark { offset, next });
        self.applied = (beginning.index, beginning.term);
    }

    /// Place and term in the replicated log up to which everything is in the last state.
    pub(super) fn applied(&self) -> (u64, u64) {
        self.applied
    }

    pub(super) fn append(&mut self, body: &[u8]) -> Result<(), AppendError> {
        self.writer.append(body).map(drop)
    }

    pub(super) fn publish(&mut self) {
        self.writer.publish();
    }

    /// Whether it is time to write down a state.
    pub(super) fn is_state_due(&self) -> bool {
        self.marks.back().is_none_or(|mark| self.writer.tail().since(mark.offset) >= STATE_EVERY)
    }

    /// Writes down what is ordered by all that is in the log.
    pub(super) fn put_state(&mut self, beginning: &Beginning, ordered: &Ordered) -> Result<(), NodeError> {
        let mut bytes = vec![ORDERS_STATE, VERSION];
        put_state(&mut bytes, beginning, ordered);
        let offset = self.writer.append(&bytes)?;
        self.writer.publish();
        self.note(offset, beginning, ordered);
        Ok(())
    }

    /// Releases what lies before the last state before which everything is `recorded`. Says where that state is.
    pub(super) fn release(&mut self, recorded: impl Fn(ShardId) -> Position) -> Offset {
        let is_past = |mark: &Mark| mark.next.iter().all(|&(shard, next)| next <= recorded(shard));
        let past = self.marks.iter().take_while(|mark| is_past(mark)).count();
        if past > 1 {
            self.marks.drain(..past - 1);
            self.writer.release_before(self.marks[0].offset);
        }
        if past > 0 { self.marks[0].offset } else { Offset::START }
    }
}

/// A record bears a state's number and is none.
const NO_STATE: pares_wire::WireError = pares_wire::WireError::InvalidField("state");
