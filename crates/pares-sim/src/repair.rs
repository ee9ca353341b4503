//! A recorder's log made anew: what is whole of it, and what its peers have of the rest.
//!
//! The contract of the node's repair: every record of its own that can be read is kept, in its order; what is missing between
//! them comes from peers, and so does what follows; there are no gaps, or there is no log. Cutting at the first damage would be
//! simpler, and would throw away what perhaps nobody else has.

use std::collections::BTreeMap;
use std::rc::Rc;

use pares_types::{Position, ShardId};

use crate::bug::Bug;
use crate::log::Log;
use crate::record::{Record, RecorderEntry};

/// A position that is nowhere to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
}

/// The log under construction.
struct Work {
    new: Log<RecorderEntry>,
    next: Vec<Position>,
    others: BTreeMap<(ShardId, Position), Rc<Record>>,
}

/// The log that takes the damaged one's place, if all below `recorded`, by shard, can be had.
pub(crate) fn repaired(
    own: &Log<RecorderEntry>,
    peers: &[&Log<RecorderEntry>],
    recorded: &[Position],
    bug: Option<Bug>,
) -> Result<Log<RecorderEntry>, Missing> {
    let mut work = Work { new: Log::new(), next: vec![Position(0); recorded.len()], others: others(peers) };
    let cuts = bug == Some(Bug::RepairByCutting);
    for (offset, entry) in (0..).zip(own.range(0, own.end())) {
        match entry {
            _ if own.is_damaged(offset) && cuts => return Ok(work.finished()),
            _ if own.is_damaged(offset) => {}
            RecorderEntry::Result(record) => work.keep(record)?,
            RecorderEntry::CheckpointStored { shard, position } => {
                // A notice comes behind what the checkpoint is made of, as it did.
                if *position <= work.next[usize::from(shard.0)] {
                    work.new.append(entry.clone());
                }
            }
        }
    }
    for (shard, &recorded) in recorded.iter().enumerate() {
        let shard = ShardId(u16::try_from(shard).expect("few shards"));
        while let Some(record) = work.others.get(&(shard, work.next[usize::from(shard.0)])) {
            work.append(Rc::clone(record));
        }
        let position = work.next[usize::from(shard.0)];
        if position < recorded {
            return Err(Missing { shard, position });
        }
    }
    Ok(work.finished())
}

/// What peers have published and can be read.
fn others(peers: &[&Log<RecorderEntry>]) -> BTreeMap<(ShardId, Position), Rc<Record>> {
    let mut others = BTreeMap::new();
    for peer in peers {
        for (offset, entry) in (0..).zip(peer.range(0, peer.published())) {
            if let RecorderEntry::Result(record) = entry
                && !peer.is_damaged(offset)
            {
                others.entry((record.shard(), record.position)).or_insert_with(|| Rc::clone(record));
            }
        }
    }
    others
}

impl Work {
    /// A record of its own, and before it what is missing up to there.
    fn keep(&mut self, record: &Rc<Record>) -> Result<(), Missing> {
        let shard = record.shard();
        loop {
            let position = self.next[usize::from(shard.0)];
            if position > record.position {
                return Ok(());
            }
            if position == record.position {
                self.append(Rc::clone(record));
                return Ok(());
            }
            let filling = self.others.get(&(shard, position)).ok_or(Missing { shard, position })?;
            self.append(Rc::clone(filling));
        }
    }

    fn append(&mut self, record: Rc<Record>) {
        self.next[usize::from(record.shard().0)] = record.position.next();
        self.new.append(RecorderEntry::Result(record));
    }

    /// Complete, and on the device.
    fn finished(mut self) -> Log<RecorderEntry> {
        self.new.reopen();
        self.new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Quantity, Reason,
        Request, RequestId, Status, Timestamp,
    };

    fn record(position: u64) -> RecorderEntry {
        let id = RequestId::new(GatewayId(0), position + 1);
        let request = Request {
            id,
            stamp: Timestamp(0),
            shard: ShardId(0),
            member: MemberId(1),
            client_order_id: ClientOrderId(position),
            instrument: InstrumentId(1),
            command: Command::Time,
        };
        let outcome = Outcome {
            status: Status::Accepted,
            reason: Reason::None,
            order: OrderId(id),
            executed: Quantity::ZERO,
            remaining: Quantity::ZERO,
        };
        let (position, events) = (Position(position), Vec::new());
        RecorderEntry::Result(Rc::new(Record {
            epoch: Epoch(1),
            position,
            state_hash: None,
            request,
            outcome,
            events,
        }))
    }

    fn log(positions: std::ops::Range<u64>) -> Log<RecorderEntry> {
        let mut log = Log::new();
        positions.for_each(|position| _ = log.append(record(position)));
        log.reopen();
        log
    }

    fn positions(log: &Log<RecorderEntry>) -> Vec<u64> {
        let of = |entry: &RecorderEntry| match entry {
            RecorderEntry::Result(record) => record.position.0,
            RecorderEntry::CheckpointStored { .. } => u64::MAX,
        };
        log.range(0, log.end()).iter().map(of).collect()
    }

    #[test]
    fn what_is_damaged_comes_from_a_peer_and_the_rest_is_kept() {
        let (mut own, peer) = (log(0..5), log(0..3));
        own.damage(1, record(4), true);
        let new = repaired(&own, &[&peer], &[Position(4)], None).unwrap();
        assert_eq!(positions(&new), [0, 1, 2, 3, 4]);
        assert!(new.is_whole());
    }

    #[test]
    fn the_damaged_end_of_it_comes_from_a_peer_too() {
        let (mut own, peer) = (log(0..3), log(0..5));
        own.damage(2, record(0), true);
        assert_eq!(positions(&repaired(&own, &[&peer], &[Position(5)], None).unwrap()), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_nobody_has_is_not_made_up() {
        let (mut own, mut peer) = (log(0..5), log(0..5));
        own.damage(1, record(0), true);
        peer.damage(1, record(0), true);
        let missing = Missing { shard: ShardId(0), position: Position(1) };
        assert_eq!(repaired(&own, &[&peer], &[Position(5)], None).unwrap_err(), missing);
    }
}
