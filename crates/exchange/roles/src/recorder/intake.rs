//! Checkpoints on their way from the venues to files.
//!
//! ```text
//!  duty cycle   First .. Next ...... Last        records up to it durable    announced
//!                 |        |          |    whole          | keep               ^
//!  writer         v        v          v -----^            v                    |
//!               .new    written    read back           head, name  ------------/ kept
//! ```
//! A state may be large, so nobody gathers it: pieces go to a task beside the duty cycle as they come, which writes them into an unfinished
//! file. The way there is bounded and never waited for: a disk that cannot keep up costs the checkpoint under way,
//! never a record.
//!
//! A checkpoint may arrive before the records it was made of: its venue was quick. Named at once it could
//! survive a power failure that those records do not, and then a state nobody ever agreed on would be
//! restored (the simulator found this). So a whole checkpoint waits, without its name, until this recorder has, durably,
//! every position below it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use pares_config::{Layout, SystemConfig};
use pares_log::Offset;
use pares_recorder::{Assembly, PieceResult};
use pares_types::{Position, RecorderId, ShardId, VenueId};
use pares_wire::record::CheckpointChunk;

use super::checkpoint_writer::{CheckpointWriter, Done, Missing, Source, Stored, WriterCommand};
use crate::NodeError;
use crate::checkpoints::remove_unfinished;
use crate::world::{Waker, World};

/// Pieces on their way to the writer, at most: 32 MiB of those a venue makes.
const PIECES_MAX: usize = 2_048;

/// Checkpoints being put together, waiting for their records, and being named.
pub(super) struct CheckpointIntake {
    assemblies: BTreeMap<Source, (Assembly, Offset)>,
    /// The newest whole one of each shard, and from where its replay starts if that is known already.
    whole: BTreeMap<ShardId, (Position, Option<Offset>)>,
    /// The shards of which one is looked for at the peers, and whether the operator knows that there was none.
    fetching: BTreeMap<ShardId, Fetching>,
    to_writer: ToWriter,
    from_writer: Receiver<Done>,
    failed: u64,
    /// What the writer still has to learn of venues that are not to be believed, or have left a shard.
    distrusted: Vec<WriterCommand>,
    /// What it could not remove.
    left: Vec<WriterCommand>,
}

/// How a search for a shard's checkpoint fares.
#[derive(Clone, Copy, Debug, Default)]
struct Fetching {
    is_under_way: bool,
    told: bool,
}

/// The way to the writer, which is woken only when it sleeps.
struct ToWriter {
    orders: SyncSender<WriterCommand>,
    asleep: Arc<AtomicBool>,
    waker: Waker,
}

impl ToWriter {
    /// Says whether there was room.
    fn send(&self, order: WriterCommand) -> bool {
        let sent = self.orders.try_send(order).is_ok();
        // After the order is on its way: a writer that falls asleep says so first and then looks once more.
        if sent && self.asleep.swap(false, Ordering::AcqRel) {
            (self.waker)();
        }
        sent
    }
}

impl CheckpointIntake {
    /// Starts the task that writes the recorder's checkpoints, syncing them if `sync`.
    pub(super) fn start<W: World>(
        world: &W,
        config: &SystemConfig,
        (id, sync): (RecorderId, bool),
    ) -> Result<Self, NodeError> {
        remove_unfinished(world, &Layout::new("").checkpoints(id));
        let (orders, to_do) = sync_channel(PIECES_MAX);
        let (done, from_writer) = channel();
        let asleep = Arc::new(AtomicBool::new(false));
        let mut writer = CheckpointWriter::new(world, config, (id, sync), (to_do, done), &asleep);
        let waker = world.spawn("checkpoints", Box::new(move || writer.turn()));
        let waker = waker.map_err(NodeError::io("starting a thread"))?;
        let to_writer = ToWriter { orders, asleep, waker };
        let (assemblies, whole, fetching) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (distrusted, left) = (Vec::new(), Vec::new());
        Ok(Self { assemblies, whole, fetching, to_writer, from_writer, failed: 0, distrusted, left })
    }

    /// A piece has come from a venue. `replay_from` says before which place of the log no record of a position or later lies; it
    /// is asked when a checkpoint begins, while that is still known.
    pub(super) fn on_chunk(
        &mut self,
        venue: VenueId,
        chunk: &CheckpointChunk,
        piece: &[u8],
        replay_from: impl FnOnce(ShardId, Position) -> Offset,
    ) {
        let (shard, position) = (ShardId(chunk.shard.get()), Position(chunk.position.get()));
        let source = (venue, shard);
        let (assembly, from) =
            self.assemblies.entry(source).or_insert_with(|| (Assembly::new(), Offset::START));
        let start = u64::from(chunk.start.get());
        let fit = assembly.on_piece(position, start, piece.len() as u64, chunk.total());
        let piece = || piece.to_vec();
        let order = match fit {
            PieceResult::First => {
                *from = replay_from(shard, position);
                WriterCommand::Begin { source, position, piece: piece() }
            }
            PieceResult::Next => WriterCommand::Write { source, piece: piece() },
            PieceResult::Last => WriterCommand::Finish { source, replay_from: *from, piece: piece() },
            PieceResult::Nowhere => return,
        };
        if !self.to_writer.send(order) {
            assembly.give_up();
            self.failed += 1;
        }
    }

    /// Has those named for which `replay_from` says where that starts: every position below them is recorded durably, and none
    /// newer is there. The others continue to wait.
    pub(super) fn store_recorded(&mut self, replay_from: impl Fn(ShardId, Position) -> Option<Offset>) {
        self.whole.retain(|&shard, &mut (position, known)| {
            let Some(found) = replay_from(shard, position) else { return true };
            let name = WriterCommand::Name { shard, position, replay_from: known.unwrap_or(found) };
            !self.to_writer.send(name)
        });
    }

    /// What came of a venue's checkpoint of a shard that it does not execute any more is of no use.
    pub(super) fn forget(&mut self, source: Source) {
        if self.assemblies.remove(&source).is_some() {
            self.distrusted.push(WriterCommand::Forget(source));
        }
    }

    /// Has a checkpoint looked for here and copied from a peer, unless that is under way.
    pub(super) fn fetch(&mut self, missing: Missing) {
        assert!(missing.first < missing.to, "a log begins before the position that it misses");
        let fetching = self.fetching.entry(missing.shard).or_default();
        let waits = self.whole.get(&missing.shard).is_some_and(|(at, _)| *at >= missing.first);
        if !fetching.is_under_way && !waits {
            fetching.is_under_way = self.to_writer.send(WriterCommand::Fetch(missing));
        }
    }

    /// Forgets what the venue has handed out, and has every checkpoint removed that is above its shard's position: the venue may
    /// have made it, or another one that started from one of its.
    pub(super) fn distrust(&mut self, venue: VenueId, above: Vec<(ShardId, Position)>) {
        self.assemblies.retain(|(of, _), _| *of != venue);
        for (shard, position) in &above {
            if self.whole.get(shard).is_some_and(|(at, _)| at > position) {
                self.whole.remove(shard);
            }
        }
        let is_clean =
            |(shard, to): &(ShardId, Position)| self.whole.get(shard).is_none_or(|(at, _)| at <= to);
        assert!(above.iter().all(is_clean), "no checkpoint that a wrong venue may have spoilt is waited for");
        self.distrusted.push(WriterCommand::Distrust(venue, above));
    }

    /// The way to the writer is short: what does not fit goes with the next cycle, for it must not be lost.
    fn tell_distrusted(&mut self) {
        while let Some(order) = self.distrusted.pop() {
            if !self.to_writer.send(order.clone()) {
                self.distrusted.push(order);
                return;
            }
        }
    }

    /// What could not be removed before is tried once more: a disk may have been full, or descriptors out.
    pub(super) fn try_removals_again(&mut self) {
        self.distrusted.append(&mut self.left);
    }

    /// Says whether the operator was informed before, without a success since, that none is available.
    fn end_fetching(&mut self, shard: ShardId, told: bool) -> bool {
        let fetching = Fetching { is_under_way: false, told };
        self.fetching.insert(shard, fetching).is_some_and(|before| before.told)
    }

    /// What became of the next checkpoint.
    pub(super) fn stored(&mut self) -> Option<Stored> {
        self.tell_distrusted();
        while let Ok(done) = self.from_writer.try_recv() {
            match done {
                Done::Whole(shard, position, replay_from) => {
                    self.end_fetching(shard, false);
                    self.whole.insert(shard, (position, replay_from));
                }
                Done::Became(stored @ Stored::Nowhere(shard)) => {
                    assert!(self.fetching.contains_key(&shard), "what is nowhere was looked for");
                    if !self.end_fetching(shard, true) {
                        return Some(stored);
                    }
                }
                Done::Became(stored @ Stored::Found(shard)) => {
                    assert!(self.fetching.contains_key(&shard), "what was found was looked for");
                    self.end_fetching(shard, false);
                    return Some(stored);
                }
                Done::Became(stored) => return Some(stored),
                Done::NotRemoved(left) => self.left.push(left),
            }
        }
        self.failed = self.failed.checked_sub(1)?;
        Some(Stored::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints;
    use crate::testing::TestWorld;
    use crate::testing::records::config;
    use pares_wire::record;
    use std::path::Path;

    const DIR: &str = "recorder-0/checkpoints";

    const SHARD: ShardId = ShardId(3);
    const VENUE: VenueId = VenueId(1);

    /// An intake and its world.
    struct Rig {
        world: TestWorld,
        intake: CheckpointIntake,
    }

    impl Rig {
        fn new() -> Self {
            let world = TestWorld::new();
            let intake = CheckpointIntake::start(&world, &config(), (RecorderId(0), false)).unwrap();
            Self { world, intake }
        }

        /// Pieces of one checkpoint of a venue, the last of them with the total if `whole`.
        fn send(&mut self, venue: VenueId, position: u64, pieces: &[&[u8]], whole: bool) {
            let mut start = 0;
            for (at, piece) in pieces.iter().enumerate() {
                let end = start + piece.len() as u32;
                let chunk = CheckpointChunk {
                    schema: record::CHECKPOINT_CHUNK,
                    version: record::VERSION,
                    shard: SHARD.0.into(),
                    epoch: 1.into(),
                    position: position.into(),
                    total_bytes: if whole && at + 1 == pieces.len() { end } else { 0 }.into(),
                    start: start.into(),
                };
                let replay_from = |_, position: Position| Offset(8 * position.0);
                self.intake.on_chunk(venue, &chunk, piece, replay_from);
                start = end;
            }
        }

        /// Continues, with everything below `recorded` recorded, until something became of a checkpoint.
        fn outcome(&mut self, recorded: u64) -> Stored {
            loop {
                self.intake.store_recorded(|_, position| (position.0 <= recorded).then_some(Offset::START));
                self.world.run_tasks();
                if let Some(stored) = self.intake.stored() {
                    return stored;
                }
            }
        }

        /// Continues until a whole checkpoint of that position waits for its records.
        fn await_whole(&mut self, position: u64) {
            while self.intake.whole.get(&SHARD).is_none_or(|(at, _)| at.0 != position) {
                self.world.run_tasks();
                assert_eq!(self.intake.stored(), None);
            }
        }

        fn kept(&self) -> Vec<(u64, Offset, Vec<u8>)> {
            let found = checkpoints::checkpoints(&self.world, Path::new(DIR), SHARD).unwrap().into_iter();
            let read = |one: &checkpoints::StoredCheckpoint| one.read(&self.world, || {}).unwrap();
            found.map(|one| (one.position().0, one.replay_from(), read(&one))).collect()
        }
    }

    #[test]
    fn a_whole_checkpoint_waits_for_its_records() {
        let mut rig = Rig::new();
        rig.send(VENUE, 9, &[b"abc", b"defg", b"h"], true);
        rig.await_whole(9);
        rig.intake.store_recorded(|_, position| (position.0 <= 8).then_some(Offset::START));
        assert_eq!(rig.kept(), []);
        assert_eq!(rig.outcome(9), Stored::Kept(SHARD, Position(9)));
        assert_eq!(rig.kept(), [(9, Offset(72), b"abcdefgh".to_vec())]);
    }

    #[test]
    fn checkpoints_of_two_venues_do_not_mix() {
        let mut rig = Rig::new();
        rig.send(VENUE, 9, &[b"abc"], false);
        rig.send(VenueId(0), 8, &[b"xy", b"z"], true);
        assert_eq!(rig.outcome(8), Stored::Kept(SHARD, Position(8)));
        assert_eq!(rig.kept(), [(8, Offset(64), b"xyz".to_vec())]);
    }

    #[test]
    fn a_newer_one_takes_the_place_of_one_that_waits() {
        let mut rig = Rig::new();
        rig.send(VENUE, 9, &[b"old", b"er"], true);
        rig.await_whole(9);
        rig.send(VENUE, 12, &[b"new", b"er"], true);
        rig.await_whole(12);
        assert_eq!(rig.outcome(12), Stored::Kept(SHARD, Position(12)));
        assert_eq!(rig.kept(), [(12, Offset(96), b"newer".to_vec())]);
    }

    #[test]
    fn unwritable_checkpoint_reported_once_next_kept() {
        let mut rig = Rig::new();
        let in_the_way = rig.world.real(&Path::new(DIR).join(format!("{SHARD}-9-{VENUE}.new")));
        std::fs::create_dir_all(&in_the_way).unwrap();
        rig.send(VENUE, 9, &[b"abc", b"def", b"g"], true);
        assert_eq!(rig.outcome(9), Stored::Failed);
        rig.send(VENUE, 10, &[b"abc", b"def"], true);
        assert_eq!(rig.outcome(10), Stored::Kept(SHARD, Position(10)));
    }

    #[test]
    fn oversized_writer_queue_costs_checkpoint_not_time() {
        let mut rig = Rig::new();
        let pieces = vec![b"x".as_slice(); PIECES_MAX + 1];
        rig.send(VENUE, 9, &pieces, true);
        assert_eq!(rig.intake.stored(), Some(Stored::Failed));
        rig.world.run_tasks();
        assert!(rig.intake.stored().is_none() && rig.intake.whole.is_empty());
    }

    #[test]
    fn the_writer_is_woken_only_when_it_sleeps() {
        let mut rig = Rig::new();
        let woken = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = Arc::clone(&woken);
        rig.intake.to_writer.waker = Box::new(move || _ = count.fetch_add(1, Ordering::Relaxed));
        rig.send(VENUE, 9, &[b"abc", b"def"], false);
        rig.world.run_tasks();
        rig.send(VENUE, 9, &[b"abc"], false);
        assert_eq!(woken.load(Ordering::Relaxed), 0, "it comes back by itself");
        rig.world.run_tasks();
        rig.world.run_tasks();
        rig.send(VENUE, 9, &[b"abc", b"def"], false);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
    }
}
