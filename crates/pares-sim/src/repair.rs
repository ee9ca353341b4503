//! A recorder's log made anew: the wiring of `pares_node::recorder::repair` over logs in memory.
//!
//! The rules (`pares_recorder::Repair`) say which record comes from where; here they meet the logs. Cutting at the first damage would
//! be simpler, and would throw away what perhaps nobody else has.

use std::rc::Rc;

use pares_recorder::repair::{Lost, Place, Repair, Turn};
use pares_types::{Epoch, Position, ShardId};

use crate::bug::Bug;
use crate::log::Log;
use crate::record::{Record, RecorderEntry, VenueEntry};

/// What a repair is made of.
pub(crate) struct Sources<'a> {
    pub(crate) own: &'a Log<RecorderEntry>,
    /// What lies below this in it was promised.
    pub(crate) promised: u64,
    pub(crate) peers: Vec<&'a Log<RecorderEntry>>,
    pub(crate) venues: Vec<&'a Log<VenueEntry>>,
    /// The life of the window in force: of what venues have only its decisions count.
    pub(crate) life: Epoch,
    /// By shard: what is known to be recorded.
    pub(crate) recorded: &'a [Position],
}

impl Sources<'_> {
    /// What the others have and can be read, by source, each with its offset: peers first, then venues.
    fn others(&self) -> Vec<Vec<(u64, Rc<Record>)>> {
        let peers = self.peers.iter().map(|log| {
            let entries =
                (0..).zip(log.range(0, log.published())).filter(|(offset, _)| !log.is_damaged(*offset));
            let records = entries.filter_map(|(offset, entry)| match entry {
                RecorderEntry::Result(record) => Some((offset, Rc::clone(record))),
                RecorderEntry::CheckpointStored { .. } => None,
            });
            records.collect()
        });
        let venues = self.venues.iter().map(|log| {
            let records =
                (0..).zip(log.range(0, log.published())).filter_map(|(offset, entry)| match entry {
                    VenueEntry::Result(record) if record.epoch == self.life => {
                        Some((offset, Rc::clone(record)))
                    }
                    VenueEntry::Result(_) | VenueEntry::Piece(_) => None,
                });
            records.collect()
        });
        peers.chain(venues).collect()
    }
}

/// The log that takes the damaged one's place.
///
/// # Errors
/// What was promised and is nowhere: then nothing takes its place.
pub(crate) fn repaired(sources: &Sources<'_>, bug: Option<Bug>) -> Result<Log<RecorderEntry>, Vec<Lost>> {
    let own = sources.own;
    let entries = || (0..).zip(own.range(0, own.end())).filter(|(offset, _)| !own.is_damaged(*offset));
    if bug == Some(Bug::RepairByCutting) {
        let kept = entries().take_while(|(offset, _)| own.whole_until(0, own.end()) > *offset);
        return Ok(complete(kept.map(|(_, entry)| entry.clone()).collect()));
    }
    let mut work = Work { repair: Repair::new(), new: Vec::new(), others: sources.others() };
    for (offset, entry) in entries() {
        if let RecorderEntry::Result(record) = entry {
            work.repair.own(record.shard(), record.position, offset < sources.promised);
        }
    }
    for (source, records) in work.others.iter().enumerate() {
        for (offset, record) in records {
            work.repair.offer(record.shard(), record.position, Place { source, offset: *offset });
        }
    }
    let lost = work.repair.lost();
    if !lost.is_empty() {
        return Err(lost);
    }
    entries().for_each(|(_, entry)| work.write_own(entry));
    while work.write_tail() {}
    let marks = (0..).map(ShardId).zip(sources.recorded);
    let lost: Vec<Lost> = marks.filter_map(|(shard, &to)| work.repair.short_of(shard, to)).collect();
    if lost.is_empty() { Ok(complete(work.new)) } else { Err(lost) }
}

/// A repair under way.
struct Work {
    repair: Repair,
    new: Vec<RecorderEntry>,
    others: Vec<Vec<(u64, Rc<Record>)>>,
}

impl Work {
    /// An entry of its own, and before it what fills the hole there.
    fn write_own(&mut self, entry: &RecorderEntry) {
        let record = match entry {
            RecorderEntry::Result(record) => record,
            // A notice comes behind what the checkpoint is made of, as it did.
            RecorderEntry::CheckpointStored { shard, position } => {
                if self.repair.next(*shard) >= *position {
                    self.new.push(entry.clone());
                }
                return;
            }
        };
        loop {
            match self.repair.turn(record.shard(), record.position) {
                Turn::Take => self.append(Rc::clone(record)),
                Turn::Fill(Place { source, offset }) => {
                    let of_source = &self.others[source];
                    let at = of_source.binary_search_by_key(&offset, |(at, _)| *at);
                    let filling = Rc::clone(&of_source[at.expect("it was offered")].1);
                    self.append(filling);
                }
                Turn::Known | Turn::Apart => return,
            }
        }
    }

    /// What follows its own records, from all others. Says whether there was anything.
    fn write_tail(&mut self) -> bool {
        let before = self.new.len();
        for source in 0..self.others.len() {
            for index in 0..self.others[source].len() {
                let record = Rc::clone(&self.others[source][index].1);
                if self.repair.turn(record.shard(), record.position) == Turn::Take {
                    self.append(record);
                }
            }
        }
        self.new.len() > before
    }

    fn append(&mut self, record: Rc<Record>) {
        self.repair.took(record.shard());
        self.new.push(RecorderEntry::Result(record));
    }
}

/// The new log, on the device.
fn complete(entries: Vec<RecorderEntry>) -> Log<RecorderEntry> {
    let mut log = Log::new();
    entries.into_iter().for_each(|entry| _ = log.append(entry));
    log.reopen();
    log
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        ClientOrderId, Command, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Quantity, Reason,
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

    fn repair(
        own: &Log<RecorderEntry>,
        peer: &Log<RecorderEntry>,
        recorded: u64,
    ) -> Result<Vec<u64>, Vec<Lost>> {
        let recorded = &[Position(recorded)];
        let (peers, venues, life, promised) = (vec![peer], Vec::new(), Epoch(1), own.durable());
        let new = repaired(&Sources { own, promised, peers, venues, life, recorded }, None)?;
        assert!(new.is_whole());
        Ok(positions(&new))
    }

    #[test]
    fn what_is_damaged_comes_from_a_peer_and_the_rest_is_kept() {
        let (mut own, peer) = (log(0..5), log(0..3));
        own.damage(1, record(4), true);
        assert_eq!(repair(&own, &peer, 4).unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn the_damaged_end_of_it_comes_from_a_peer_too() {
        let (mut own, peer) = (log(0..3), log(0..5));
        own.damage(2, record(0), true);
        assert_eq!(repair(&own, &peer, 5).unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_nobody_has_is_not_made_up() {
        let (mut own, mut peer) = (log(0..5), log(0..5));
        own.damage(1, record(0), true);
        peer.damage(1, record(0), true);
        let lost = Lost { shard: ShardId(0), first: Position(1), last: Position(1) };
        assert_eq!(repair(&own, &peer, 5).unwrap_err(), [lost]);
    }
}
