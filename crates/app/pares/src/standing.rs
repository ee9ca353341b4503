//! The books of a system as they stand, though nobody of it is asked.
//!
//! `pares.toml` says what the exchange began with; instruments have come and gone and rules have changed since, and only the
//! record knows. Reading all of it takes as long as the exchange is old. So this does what a venue does that starts: newest
//! checkpoint of each shard, then the committed stream from there. No record is written, and no node notices.

use std::collections::BTreeMap;

use pares_book::{Book, FastBook, Instrument};
use pares_log::Offset;
use pares_node::checkpoints::{self, StoredCheckpoint};
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError, SystemConfig};
use pares_register::Register;
use pares_types::{Epoch, Event, InstrumentId, Outcome, RecorderId, Request, ShardId};
use pares_venue::{Gap, Recorded, ResultAt, Shard, VenueSink};

/// Records read from each recorder at a time.
const BATCH_MAX: usize = 2_048;

/// All shards, as far as their record was committed when it was read last.
pub struct Standing {
    shards: BTreeMap<ShardId, Shard<FastBook>>,
    stream: CommittedStream<HostWorld>,
}

impl Standing {
    /// Reads all that is committed now.
    ///
    /// # Errors
    /// If the configuration is not valid, or the record is damaged.
    pub fn read(config: &SystemConfig, layout: &Layout) -> Result<Self, NodeError> {
        let world = HostWorld::new(layout)?;
        let mut from: BTreeMap<RecorderId, Offset> =
            config.recorder_ids().map(|id| (id, Offset(u64::MAX))).collect();
        let mut shards = BTreeMap::new();
        for (id, instruments) in config.shards()? {
            let shard = restore(config, (id, &instruments), &world, &mut from);
            shards.insert(id, shard);
        }
        let mut stream = CommittedStream::new(&world, config, |recorder| from[&recorder])?;
        for (&id, shard) in &shards {
            stream.start_at(id, shard.position());
        }
        let mut standing = Self { shards, stream };
        standing.read_on()?;
        Ok(standing)
    }

    /// Reads on from there.
    ///
    /// # Errors
    /// If the record is damaged.
    pub fn read_on(&mut self) -> Result<(), NodeError> {
        let Self { shards, stream } = self;
        let mut on = |item: Committed<'_>| {
            let Committed::Result { record, .. } = item else { return Ok(()) };
            // A record may be of a time when the system had more shards.
            let Some(shard) = shards.get_mut(&record.shard()) else { return Ok(()) };
            let (request, reason) = (record.request()?, record.outcome()?.reason);
            let recorded = Recorded { position: record.position(), request: &request, reason };
            let gap = |Gap { next, met }| NodeError::Gap { shard: record.shard(), next, met };
            shard.on_committed(recorded, Epoch(0), &mut Silence).map(|_| ()).map_err(gap)
        };
        while stream.poll(BATCH_MAX, &mut on)? >= BATCH_MAX {}
        Ok(())
    }

    /// The shards.
    pub fn shards(&self) -> impl Iterator<Item = &Shard<FastBook>> {
        self.shards.values()
    }

    /// Who participates.
    pub fn register(&self) -> &Register {
        self.shards().next().map(Shard::register).expect("a system has shards")
    }

    /// The instrument that people call so, in whatever case; else the one of that id.
    pub fn find(&self, name: &str) -> Option<&Instrument> {
        let called = |one: &&Instrument| one.symbol.as_str().eq_ignore_ascii_case(name);
        let id = || name.parse().ok().map(InstrumentId);
        self.instruments().find(called).or_else(|| self.instruments().find(|one| Some(one.id) == id()))
    }

    /// All instruments there are now.
    pub fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.shards().flat_map(Shard::books).map(Book::instrument)
    }
}

/// A shard from its newest checkpoint that can be read, else as it is configured; `from` is moved back to where its records
/// begin in each recorder's log.
fn restore(
    config: &SystemConfig,
    (id, instruments): (ShardId, &[Instrument]),
    world: &HostWorld,
    from: &mut BTreeMap<RecorderId, Offset>,
) -> Shard<FastBook> {
    // Without them the log is read from farther back, if it reaches there.
    let of =
        |&recorder: &RecorderId| (recorder, checkpoints::stored_by(world, recorder, id).unwrap_or_default());
    let stored: BTreeMap<RecorderId, Vec<StoredCheckpoint>> = from.keys().map(of).collect();
    let mut newest: Vec<&StoredCheckpoint> = stored.values().flatten().collect();
    newest.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.position()));
    let read = |checkpoint: &StoredCheckpoint| Shard::restore(id, &checkpoint.read(world, || ())?).ok();
    let shard = newest
        .into_iter()
        .find_map(read)
        .unwrap_or_else(|| Shard::new(id, instruments).with_register(config.register()));
    for (recorder, from) in from {
        // A recorder's own checkpoint says where its log must be read from, unless it is newer than the state.
        let own = stored[recorder].iter().filter(|checkpoint| checkpoint.position() <= shard.position());
        let own = own.max_by_key(|checkpoint| checkpoint.position());
        *from = (*from).min(own.map_or(Offset::START, StoredCheckpoint::replay_from));
    }
    shard
}

/// Nobody is to hear what is executed again.
struct Silence;

impl VenueSink for Silence {
    fn has_room(&mut self) -> bool {
        false
    }

    fn result(&mut self, _: ResultAt, _: &Request, _: &Outcome, _: &[Event]) {}
}
