//! A recorder whose log is damaged or poisoned rebuilds it, from what is whole of it and from the others' logs.
//!
//! Refusing to start and waiting for an operator costs a copy of the record for as long as the operator sleeps, although
//! all that is missing lies next door. So the process that opens a recorder's log (its recorder, or the supervisor before any node
//! runs) tries it as it is first, and repairs it once if it cannot be read. The rules are `pares_recorder::Repair`; how the
//! new log takes the old one's place without a moment of danger is `pares_log::Replacement`. Here they meet the files:
//!
//! ```text
//!  own log, what is whole --own-->  Repair  <--offer-- peers' logs, venues' logs (decisions of the life in force)
//!                                     | turn
//!  read again in the same order ------+-----> new log, checkpoints with their places in it --> in the place of the old
//! ```
//! Everything is read at least twice and nothing is kept in memory but the places of what fills holes. The device must have
//! room for both logs: the damaged one stays in `damaged-N` inside the recorder's directory until an operator removes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::{LogReplacement, LogSalvage, Offset, ReadError, Record};
use pares_recorder::repair::{Filling, Lost, Repair, Turn};
use pares_sequencer::Sequencer;
use pares_types::{Epoch, Position, RecorderId, ShardId};
use pares_wire::record::{self, CheckpointStored, ResultRecord};

use super::shard;
use crate::checkpoints;
use crate::left_out::{self, LeftOut};
use crate::world::World;
use crate::{NodeError, epoch, index};

/// Does `open`, which needs the recorder's log whole; if the log is damaged or poisoned, repairs it and does it again.
///
/// # Errors
/// As `open`, or [`NodeError::Irreparable`].
pub(crate) fn whole<T, W: World>(
    world: &W,
    id: RecorderId,
    config: &SystemConfig,
    mut open: impl FnMut() -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let left_out = LeftOut::read(world, id)?;
    let why = match open() {
        Err(error) if error.is_damage() => error.to_string(),
        Ok(_) if left_out.is_some() => "the system was started without it".into(),
        other => return other,
    };
    repair(world, id, config, (&why, left_out))?;
    left_out::forget(world, id)?;
    open()
}

fn repair<W: World>(
    world: &W,
    id: RecorderId,
    config: &SystemConfig,
    (why, left_out): (&str, Option<LeftOut>),
) -> Result<(), NodeError> {
    let log = NodeId::Recorder(id);
    world.complain(&format_args!("{log}: {why}"));
    world.complain(&format_args!("{log}: rebuilding its log from the intact records and from other logs"));
    let checkpoints = Layout::new("").checkpoints(id);
    let mut work = Work {
        world,
        log,
        shards: config.shards()?.len(),
        new: world.replace_log(log, crate::durable_log(config))?,
        others: others(world, id, config, left_out.as_ref()),
        repair: Repair::new(),
        checkpoints: checkpoints_of(world, config, &checkpoints, left_out.as_ref())?,
        left_out,
        own: 0,
        from_others: 0,
    };
    let lost = work.fill(recorded_marks(world, config)?)?;
    if !lost.is_empty() {
        let missing = lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(NodeError::Irreparable { log: log.to_string().into(), why: why.into(), missing });
    }
    work.keep_checkpoints(&checkpoints, &Layout::new("").recorder_log(id).join("repair/checkpoints"));
    let (own, others) = (work.own, work.from_others);
    // Before: what they say is not true of the new log.
    index::remove(world, id);
    let aside = work.new.complete()?;
    let aside = aside.display();
    world.complain(&format_args!(
        "{log}: repaired with {own} records of its own and {others} from other logs; the damaged log is in {aside}"
    ));
    Ok(())
}

/// What the windows say, if they are there: they do not survive everything that logs do.
struct Recorded {
    life: Epoch,
    marks: BTreeMap<ShardId, Position>,
}

fn recorded_marks(world: &impl World, config: &SystemConfig) -> Result<Recorded, NodeError> {
    let life = epoch::of_records(world, config).unwrap_or(Epoch(0));
    let mut recorded = Recorded { life, marks: BTreeMap::new() };
    for shard in config.shards()?.into_keys() {
        if let Ok(Some(window)) = world.open_window(shard) {
            recorded.marks.insert(shard, window.recorded());
        }
    }
    Ok(recorded)
}

/// Another log to take records from.
struct Other {
    log: NodeId,
    /// Of a venue's log only decisions of this life count; of a recorder's log all but what is given up.
    life: Epoch,
    /// What is given up, by what is noted of the recorder whose log is repaired, and of the one whose log this is.
    left_out: Vec<LeftOut>,
}

impl Other {
    /// What it has published; nothing if it is not there.
    fn read<W: World>(&self, world: &W) -> Option<W::Salvage> {
        world.salvage_log(self.log).ok()
    }

    fn counts(&self, record: &ResultRecord<'_>) -> bool {
        (matches!(self.log, NodeId::Recorder(_)) || record.epoch() == self.life)
            && !self.left_out.iter().any(|left_out| left_out.concerns(record))
    }
}

/// Peers first; none of whom nobody can tell what counts.
fn others(world: &impl World, id: RecorderId, config: &SystemConfig, own: Option<&LeftOut>) -> Vec<Other> {
    let other = |log, theirs: Option<LeftOut>| {
        let left_out = own.cloned().into_iter().chain(theirs).collect();
        Other { log, life: Epoch(0), left_out }
    };
    let peers = config.recorder_ids().filter(|&peer| peer != id);
    let peers =
        peers.filter_map(|peer| Some(other(NodeId::Recorder(peer), LeftOut::read(world, peer).ok()?)));
    peers.chain(config.venue_ids().map(|venue| other(NodeId::Venue(venue), None))).collect()
}

/// A checkpoint that is kept: its shard and position, and where replay starts in the new log, once known.
type Kept = BTreeMap<(ShardId, Position), Option<Offset>>;

/// Not those of states that are past what counts.
fn checkpoints_of(
    world: &impl World,
    config: &SystemConfig,
    dir: &Path,
    left_out: Option<&LeftOut>,
) -> Result<Kept, NodeError> {
    let shards = config.shards()?;
    let counts = |&((shard, at), _): &((ShardId, Position), Option<Offset>)| {
        left_out.and_then(|left_out| left_out.first(shard)).is_none_or(|first| at <= first)
    };
    let mut kept = Kept::new();
    for shard in shards.into_keys() {
        let of = checkpoints::positions(world, dir, shard)?.into_iter();
        kept.extend(of.map(|at| ((shard, at), None)).filter(counts));
    }
    Ok(kept)
}

/// A repair under way.
struct Work<'a, W: World> {
    world: &'a W,
    log: NodeId,
    /// How many the system has.
    shards: usize,
    new: W::Replacement,
    others: Vec<Other>,
    repair: Repair,
    left_out: Option<LeftOut>,
    checkpoints: Kept,
    own: u64,
    from_others: u64,
}

impl<W: World> Work<'_, W> {
    /// Puts the new log together. Says what was promised and is nowhere.
    fn fill(&mut self, recorded: Recorded) -> Result<Vec<Lost>, NodeError> {
        self.learn(recorded.life)?;
        let lost = self.repair.lost();
        if !lost.is_empty() {
            return Ok(lost);
        }
        self.write_own()?;
        while self.write_tail()? {}
        let short = |(&shard, &position)| self.repair.short_of(shard, position);
        Ok(recorded.marks.iter().filter_map(short).collect())
    }

    /// Tells the rules what there is. The life in force is the latest that the windows or any log know of.
    fn learn(&mut self, mut life: Epoch) -> Result<(), NodeError> {
        let recorders = self.others.iter().map(|other| other.log).chain([self.log]);
        for log in recorders.filter(|log| matches!(log, NodeId::Recorder(_))) {
            for (shard, position) in shard::beginnings(self.world, log, self.shards) {
                self.repair.begins(shard, position);
            }
        }
        let promised = self.new.promised();
        let mut own = self.new.damaged()?;
        while let Some(entry) = own.next() {
            if let Some(record) = result(&entry)? {
                life = life.max(record.epoch());
                if is_void(self.left_out.as_ref(), &record) {
                    continue;
                }
                self.repair.own(record.shard(), record.position(), entry.offset < promised);
            }
        }
        for other in &self.others {
            let Some(mut log) = other.read(self.world) else { continue };
            while let Some(entry) = log.next() {
                life = foreign(&entry).map_or(life, |record| life.max(record.epoch()));
            }
        }
        self.others.iter_mut().for_each(|other| other.life = life);
        for (source, other) in self.others.iter().enumerate() {
            let Some(mut log) = other.read(self.world) else { continue };
            while let Some(entry) = log.next() {
                let Some(record) = foreign(&entry).filter(|record| other.counts(record)) else { continue };
                let place = Filling { source, offset: entry.offset.0 };
                self.repair.offer(record.shard(), record.position(), place);
            }
        }
        Ok(())
    }

    /// Its own records, with what fills the holes between them.
    fn write_own(&mut self) -> Result<(), NodeError> {
        let mut own = self.new.damaged()?;
        let mut fills: Vec<_> = self.others.iter().map(|other| other.read(self.world)).collect();
        while let Some(entry) = own.next() {
            let Some(record) = result(&entry)? else {
                self.write_notice(entry.payload)?;
                continue;
            };
            if is_void(self.left_out.as_ref(), &record) {
                continue;
            }
            let (shard, position) = (record.shard(), record.position());
            loop {
                match self.repair.turn(shard, position) {
                    Turn::Take => {
                        self.append(shard, entry.payload)?;
                        self.own += 1;
                    }
                    Turn::Fill(place) => {
                        let log = fills[place.source].as_mut();
                        let filling = log.and_then(|log| log.read_at(Offset(place.offset)));
                        // A venue may release what it had a moment ago: the recorders have it, so the next try will do.
                        let dir = PathBuf::from(self.others[place.source].log.to_string());
                        let payload = filling.ok_or(NodeError::Log(ReadError::NotYet { dir }))?.payload;
                        self.append(shard, payload)?;
                        self.from_others += 1;
                    }
                    Turn::Known | Turn::Apart => break,
                }
            }
        }
        Ok(())
    }

    /// A notice of a checkpoint comes behind what the checkpoint is made of, as it did.
    fn write_notice(&mut self, payload: &[u8]) -> Result<(), NodeError> {
        if record::schema(payload) == Some(record::CHECKPOINT_STORED) {
            let stored = CheckpointStored::read(payload)?;
            if self.repair.next(ShardId(stored.shard.get())) < Position(stored.position.get()) {
                return Ok(());
            }
        }
        self.new.append(payload)?;
        Ok(())
    }

    /// What follows its own records, from all others, one after the other. Says whether there was anything: then one
    /// of the others may have what comes behind it.
    fn write_tail(&mut self) -> Result<bool, NodeError> {
        let before = self.from_others;
        for source in 0..self.others.len() {
            let Some(mut log) = self.others[source].read(self.world) else { continue };
            while let Some(entry) = log.next() {
                let counts = |record: &ResultRecord<'_>| self.others[source].counts(record);
                let Some(record) = foreign(&entry).filter(counts) else { continue };
                if self.repair.turn(record.shard(), record.position()) == Turn::Take {
                    self.append(record.shard(), entry.payload)?;
                    self.from_others += 1;
                }
            }
        }
        Ok(self.from_others > before)
    }

    fn append(&mut self, shard: ShardId, payload: &[u8]) -> Result<(), NodeError> {
        let position = self.repair.next(shard);
        let offset = self.new.append(payload)?;
        if let Some(from) = self.checkpoints.get_mut(&(shard, position)) {
            *from = Some(offset);
        }
        self.repair.took(shard);
        assert_eq!(self.repair.next(shard), position.next(), "the next position follows the one appended");
        Ok(())
    }

    /// Its checkpoints, each with where replay starts now: its record, or the end if that was the last one.
    fn keep_checkpoints(&self, dir: &Path, place: &Path) {
        for (&(shard, position), &from) in &self.checkpoints {
            let end = || (position == self.repair.next(shard)).then(|| self.new.tail());
            assert!(from.is_none_or(|from| from < self.new.tail()), "replay starts within the new log");
            let Some(replay_from) = from.or_else(end) else { continue };
            if let Ok(Some(checkpoint)) = checkpoints::at(self.world, dir, shard, position) {
                // One less is a longer replay for a venue that starts, and no reason to go without a recorder.
                let _ = checkpoint.copy(self.world, place, replay_from);
            }
        }
    }
}

/// Whether everything was started without that record.
fn is_void(left_out: Option<&LeftOut>, record: &ResultRecord<'_>) -> bool {
    left_out.is_some_and(|left_out| left_out.concerns(record))
}

/// The result in a record of another log, if it is one that this build understands: nothing else is available from it.
fn foreign<'a>(entry: &Record<'a>) -> Option<ResultRecord<'a>> {
    result(entry).ok().flatten().filter(|record| record.check().is_ok())
}

fn result<'a>(entry: &Record<'a>) -> Result<Option<ResultRecord<'a>>, NodeError> {
    match record::schema(entry.payload) {
        Some(record::RESULT) => Ok(Some(ResultRecord::read(entry.payload)?)),
        _ => Ok(None),
    }
}
