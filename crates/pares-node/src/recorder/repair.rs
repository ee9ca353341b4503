//! A recorder whose log is damaged or poisoned makes it anew, from what is whole of it and from the others' logs.
//!
//! Refusing to start and waiting for an operator costs a copy of the record for as long as the operator sleeps, although
//! all that is missing lies next door. So whoever opens a recorder's log (its recorder, or the supervisor before any node
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

use pares_log::{Offset, OpenError, ReadError, Record, Replacement, Salvage};
use pares_recorder::repair::{Lost, Place, Repair, Turn};
use pares_sequencer::Sequencer;
use pares_shm::SharedWindow;
use pares_types::{Epoch, Position, RecorderId, ShardId};
use pares_wire::record::{self, CheckpointStored, ResultRecord};

use crate::NodeError;
use crate::checkpoints;
use crate::config::{Layout, SystemConfig};
use crate::error::complain;

/// Does `open`, which needs the recorder's log whole; if the log is damaged or poisoned, repairs it and does it again.
///
/// # Errors
/// As `open`, or [`NodeError::Irreparable`].
pub(crate) fn whole<T>(
    id: RecorderId,
    config: &SystemConfig,
    layout: &Layout,
    mut open: impl FnMut() -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    match open() {
        Err(error) if is_damage(&error) => {
            repair(id, config, layout, &error)?;
            open()
        }
        other => other,
    }
}

/// Whether another log in its place would help.
fn is_damage(error: &NodeError) -> bool {
    match error {
        NodeError::Open(OpenError::Damaged { .. } | OpenError::Poisoned { .. }) => true,
        NodeError::Log(ReadError::Damaged { .. } | ReadError::Foreign { .. }) => true,
        NodeError::Log(ReadError::Map(error)) => error.is_not_yet(),
        _ => false,
    }
}

fn repair(id: RecorderId, config: &SystemConfig, layout: &Layout, why: &NodeError) -> Result<(), NodeError> {
    let log = layout.recorder_log(id);
    complain(format_args!("recorder-{id}: {why}"));
    complain(format_args!(
        "recorder-{id}: making its log anew from what is whole of it and from the other logs"
    ));
    let irreparable = |lost: &[Lost]| NodeError::Irreparable {
        log: log.clone(),
        why: why.to_string(),
        missing: lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let recorded = recorded_marks(config, layout)?;
    let mut work = Work {
        new: Replacement::begin(&log, super::log_config(config))?,
        others: others(id, config, layout),
        repair: Repair::new(),
        checkpoints: checkpoints_of(config, &layout.checkpoints(id))?,
        own: 0,
        from_others: 0,
    };
    work.learn(recorded.life)?;
    let lost = work.repair.lost();
    if !lost.is_empty() {
        return Err(irreparable(&lost));
    }
    work.write_own()?;
    while work.write_tail()? {}
    let short = |(&shard, &position)| work.repair.short_of(shard, position);
    let lost: Vec<Lost> = recorded.marks.iter().filter_map(short).collect();
    if !lost.is_empty() {
        return Err(irreparable(&lost));
    }
    work.keep_checkpoints(&layout.checkpoints(id));
    let (own, others) = (work.own, work.from_others);
    let aside = work.new.complete()?;
    let aside = aside.display();
    complain(format_args!(
        "recorder-{id}: repaired: {own} records of its own, {others} from others; the damaged log is in {aside}"
    ));
    Ok(())
}

/// What the windows say, if they are there: they do not survive everything that logs do.
struct Recorded {
    life: Epoch,
    marks: BTreeMap<ShardId, Position>,
}

fn recorded_marks(config: &SystemConfig, layout: &Layout) -> Result<Recorded, NodeError> {
    let mut recorded = Recorded { life: Epoch(0), marks: BTreeMap::new() };
    for shard in config.shards()?.into_keys() {
        if let Ok(window) = SharedWindow::open(&layout.window(shard)) {
            recorded.life = recorded.life.max(window.epoch());
            recorded.marks.insert(shard, window.recorded());
        }
    }
    Ok(recorded)
}

/// Another log to take records from.
struct Other {
    log: PathBuf,
    /// Of a venue's log only decisions of this life count; everything in a recorder's log does.
    venue: bool,
    life: Epoch,
}

impl Other {
    /// What it has published; nothing if it is not there.
    fn read(&self) -> Option<Salvage> {
        Salvage::published(&self.log).ok()
    }

    fn counts(&self, record: &ResultRecord<'_>) -> bool {
        !self.venue || record.epoch() == self.life
    }
}

/// Peers first.
fn others(id: RecorderId, config: &SystemConfig, layout: &Layout) -> Vec<Other> {
    let other = |log, venue| Other { log, venue, life: Epoch(0) };
    let peers = config.recorder_ids().filter(|&peer| peer != id);
    let peers = peers.map(|peer| other(layout.recorder_log(peer), false));
    peers.chain(config.venue_ids().map(|venue| other(layout.venue_log(venue), true))).collect()
}

/// A checkpoint that is kept: its shard and position, and where replay starts in the new log, once known.
type Kept = BTreeMap<(ShardId, Position), Option<Offset>>;

fn checkpoints_of(config: &SystemConfig, dir: &Path) -> Result<Kept, NodeError> {
    let shards = config.shards()?;
    let of = |shard| checkpoints::positions(dir, shard).into_iter().map(move |at| ((shard, at), None));
    Ok(shards.into_keys().flat_map(of).collect())
}

/// A repair under way.
struct Work {
    new: Replacement,
    others: Vec<Other>,
    repair: Repair,
    checkpoints: Kept,
    own: u64,
    from_others: u64,
}

impl Work {
    /// Tells the rules what there is. The life in force is the latest that the windows or any log know of.
    fn learn(&mut self, mut life: Epoch) -> Result<(), NodeError> {
        let promised = self.new.promised();
        let mut own = self.new.damaged()?;
        while let Some(entry) = own.next() {
            if let Some(record) = result(&entry)? {
                life = life.max(record.epoch());
                self.repair.own(record.shard(), record.position(), entry.offset < promised);
            }
        }
        for other in &self.others {
            let Some(mut log) = other.read() else { continue };
            while let Some(entry) = log.next() {
                life = result(&entry)?.map_or(life, |record| life.max(record.epoch()));
            }
        }
        self.others.iter_mut().for_each(|other| other.life = life);
        for (source, other) in self.others.iter().enumerate() {
            let Some(mut log) = other.read() else { continue };
            while let Some(entry) = log.next() {
                let Some(record) = result(&entry)?.filter(|record| other.counts(record)) else { continue };
                let place = Place { source, offset: entry.offset.0 };
                self.repair.offer(record.shard(), record.position(), place);
            }
        }
        Ok(())
    }

    /// Its own records, with what fills the holes between them.
    fn write_own(&mut self) -> Result<(), NodeError> {
        let mut own = self.new.damaged()?;
        let mut fills: Vec<_> = self.others.iter().map(Other::read).collect();
        while let Some(entry) = own.next() {
            let Some(record) = result(&entry)? else {
                self.write_notice(entry.payload)?;
                continue;
            };
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
                        let gone =
                            NodeError::Log(ReadError::NotYet { dir: self.others[place.source].log.clone() });
                        let payload = filling.ok_or(gone)?.payload;
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
            let Some(mut log) = self.others[source].read() else { continue };
            while let Some(entry) = log.next() {
                let Some(record) = result(&entry)?.filter(|record| self.others[source].counts(record)) else {
                    continue;
                };
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
        Ok(())
    }

    /// Its checkpoints, each with where replay starts now: its record, or the end if that was the last one.
    fn keep_checkpoints(&self, dir: &Path) {
        let place = self.new.place().join("checkpoints");
        for (&(shard, position), &from) in &self.checkpoints {
            let end = || (position == self.repair.next(shard)).then(|| self.new.tail());
            let Some(replay_from) = from.or_else(end) else { continue };
            if let Some(checkpoint) = checkpoints::at(dir, shard, position) {
                // One less is a longer replay for a venue that starts, and no reason to go without a recorder.
                let _ = checkpoint.copy(&place, replay_from);
            }
        }
    }
}

/// The result in a record, if it is one.
fn result<'a>(entry: &Record<'a>) -> Result<Option<ResultRecord<'a>>, NodeError> {
    match record::schema(entry.payload) {
        Some(record::RESULT) => Ok(Some(ResultRecord::read(entry.payload)?)),
        _ => Ok(None),
    }
}
