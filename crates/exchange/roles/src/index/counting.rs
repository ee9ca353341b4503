//! Counting what members receive, as a recorder's log is read.
//!
//! A record says to whom something is sent, and not which number that has. So whatever makes rows counts, from a place where the numbers
//! are known: the log's beginning, the end of the run before, or a checkpoint.

use std::collections::BTreeMap;

use pares_log::Offset;
use pares_stream::{StreamNumbers, Told};
use pares_types::{Event, MemberId, Position, RecorderId, ShardId};
use pares_venue::checkpoint;
use pares_wire::WireError;
use pares_wire::record::ResultRecord;

use super::{Key, Row};
use crate::checkpoints;
use crate::world::World;

/// In place of a member, above all of them: the next position of a shard.
const POSITIONS: u64 = 1 << 48;

pub(super) fn stream(member: MemberId, shard: ShardId) -> u64 {
    u64::from(member.0) << 16 | u64::from(shard.0)
}

pub(super) fn positions(shard: ShardId) -> u64 {
    POSITIONS | u64::from(shard.0)
}

/// What was counted of all shards, up to a place of a log.
#[derive(Default)]
pub(super) struct Counting {
    shards: BTreeMap<ShardId, Counted>,
    events: Vec<Event>,
    rows: Vec<Row>,
}

/// Up to where a shard was counted.
#[derive(Default)]
struct Counted {
    next: Position,
    numbers: StreamNumbers,
}

impl Counting {
    /// From the recorder's newest checkpoints that can be read, once each shard has one.
    pub(super) fn from_checkpoints(
        world: &impl World,
        recorder: RecorderId,
        shards: &[ShardId],
    ) -> Option<Self> {
        let counted = |&shard: &ShardId| {
            let stored = checkpoints::stored_by(world, recorder, shard).ok()?;
            let (view, ..) = stored.iter().find_map(|stored| {
                let state = stored.read(world, || {})?;
                checkpoint::view(shard, &state).ok()
            })?;
            Some((shard, Counted { next: view.position, numbers: StreamNumbers::restore(&view.told)? }))
        };
        Some(Self { shards: shards.iter().map(counted).collect::<Option<_>>()?, ..Self::default() })
    }

    /// From the last rows of a run that ends at `to`; `None` if they cannot be that.
    pub(super) fn from_run(rows: &[Row], to: u64) -> Option<Self> {
        type Ends = (Option<Position>, Vec<(MemberId, u64)>);
        let mut shards: BTreeMap<ShardId, Ends> = BTreeMap::new();
        for &Row { key: [of, number], .. } in rows.iter().filter(|row| row.offset == to) {
            let (next, told) = shards.entry(ShardId(of as u16)).or_default();
            match of < POSITIONS {
                true => told.push((MemberId((of >> 16) as u32), number.checked_sub(1)?)),
                false => *next = Some(Position(number)),
            }
        }
        let counted = shards.into_iter().map(|(shard, (next, told))| {
            Some((shard, Counted { next: next?, numbers: StreamNumbers::restore(&told)? }))
        });
        Some(Self { shards: counted.collect::<Option<_>>()?, ..Self::default() })
    }

    /// A row for each member that the record tells something: the first number there. Of a shard that was not counted so far, none.
    pub(super) fn count(
        &mut self,
        record: &ResultRecord<'_>,
        offset: Offset,
        out: &mut Vec<Row>,
    ) -> Result<(), WireError> {
        let (shard, position) = (record.shard(), record.position());
        let next = self.shards.get(&shard).map_or(Position(0), |counted| counted.next);
        if position != next {
            return Ok(());
        }
        let Self { shards, events, rows } = self;
        events.clear();
        rows.clear();
        for event in record.events() {
            events.push(event?);
        }
        let (request, outcome) = (&record.request()?, &record.outcome()?);
        let counted = shards.entry(shard).or_default();
        counted.next = position.next();
        Told { position, request, outcome, events }.read(|member, _| {
            let key = [stream(member, shard), counted.numbers.next(member)];
            rows.push(Row { key, offset: offset.0 });
        });
        rows.sort_unstable();
        rows.dedup_by_key(|row| row.key[0]);
        out.append(rows);
        Ok(())
    }

    /// The last rows of a run that ends at `to`: what comes next there of each shard, and of each member's stream.
    pub(super) fn ends(&self, to: u64) -> impl Iterator<Item = Row> {
        self.shards.iter().flat_map(move |(&shard, counted)| {
            let row = move |key: Key| Row { key, offset: to };
            let streams = counted.numbers.sorted().into_iter();
            let streams = streams.map(move |(member, last)| row([stream(member, shard), last + 1]));
            streams.chain([row([positions(shard), counted.next.0])])
        })
    }
}
