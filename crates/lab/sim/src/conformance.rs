//! One suite over both kinds of logs: the mapped ones that ship and those in memory that the simulator gives the roles.

use pares_config::NodeId;
use pares_log::{
    AppendError, Config, Durability, LogMirror, LogReader, LogReplacement, LogSalvage, LogWriter, Offset,
    OpenError, ReadError,
};
use pares_roles::world::World;
use pares_types::VenueId;

use crate::memory::host::Host;
use crate::memory::machine::Machine;
use crate::memory::seam::Seam;

const LOG: NodeId = NodeId::Venue(VenueId(0));
const SEGMENT: u64 = 512 << 10;

fn a_mirror_has_what_its_source_has(trial: &impl Trial) {
    let (world, mirrored) = (trial.world(), NodeId::Gateway(pares_types::GatewayId(0)));
    let (mut writer, offsets) = write(world, 0..5);
    writer.begin_segment().unwrap();
    writer.append(&payload(5)).unwrap();
    writer.publish();
    let mut reader = world.read_log_from_start(LOG).unwrap();
    let open = |afresh| world.mirror_log(mirrored, config(Durability::Os), afresh);
    let mut mirror = open(false).unwrap();
    let first = reader.next_stretch(Offset(u64::MAX), 1).unwrap().unwrap();
    assert_eq!((first.offset, mirror.next()), (offsets[0], offsets[0]));
    mirror.take(first.offset, first.bytes).unwrap();
    assert!(mirror.take(first.offset, first.bytes).is_err(), "it is not what follows");
    assert_eq!(mirror.publish(Offset(u64::MAX)), offsets[1], "no more than there is");
    while let Some(stretch) = reader.next_stretch(Offset(u64::MAX), 1 << 20).unwrap() {
        mirror.take(stretch.offset, stretch.bytes).unwrap();
    }
    mirror.publish(offsets[1]);
    let mut copy = world.read_log_from_start(mirrored).unwrap();
    assert_eq!((read(&mut copy), copy.durable()), (numbers(0..6), offsets[1]));
    assert_eq!(mirror.next(), writer.tail());
    drop(mirror);
    let appends = world.write_log(mirrored, config(Durability::Os)).map(drop);
    assert!(matches!(appends, Err(OpenError::Mirror { .. })));
    assert_eq!(open(false).unwrap().next(), writer.tail(), "opened again it continues");
    assert_eq!(open(true).unwrap().next(), offsets[0]);
    assert!(copy.is_replaced());
    drop(writer);
    let mirrors = world.mirror_log(LOG, config(Durability::Os), false).map(drop);
    assert!(matches!(mirrors, Err(OpenError::NotAMirror { .. })));
}

/// A world whose logs are tried, and what can befall them.
trait Trial {
    type World: World;
    fn world(&self) -> &Self::World;
    /// Flips a bit of the byte at that offset of the log.
    fn flip(&self, at: u64);
    fn vanish(&self);
    /// Writes zeros over the second half of the last record, as a death in the middle of it leaves it.
    fn tear(&self, at: u64, len: usize);
}

fn config(durability: Durability) -> Config {
    Config::default().segment_bytes(SEGMENT).durability(durability)
}

fn payload(n: u32) -> Vec<u8> {
    [n.to_le_bytes().as_slice(), &[7; 60]].concat()
}

fn write<W: World>(world: &W, numbers: std::ops::Range<u32>) -> (W::Writer, Vec<Offset>) {
    let mut writer = world.write_log(LOG, config(Durability::Os)).unwrap();
    let offsets = numbers.map(|n| writer.append(&payload(n)).unwrap()).collect();
    writer.publish();
    (writer, offsets)
}

/// What a reader gets from where it is, past damage.
fn read(reader: &mut impl LogReader) -> Vec<u32> {
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => found.push(u32::from_le_bytes(record.payload[..4].try_into().unwrap())),
            Ok(None) => return found,
            Err(ReadError::Damaged { .. }) => _ = reader.skip_damage(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

fn only_what_is_published_is_read(trial: &impl Trial) {
    let world = trial.world();
    assert!(matches!(world.read_log_from_start(LOG), Err(ReadError::NotYet { .. })));
    let (mut writer, _) = write(world, 0..3);
    writer.append(&payload(3)).unwrap();
    let mut reader = world.read_log_from_start(LOG).unwrap();
    assert_eq!(read(&mut reader), numbers(0..3));
    writer.publish();
    assert_eq!(read(&mut reader), [3]);
    assert_eq!(writer.durable(), writer.tail());
}

fn a_log_has_one_writer(trial: &impl Trial) {
    let held = write(trial.world(), 0..1);
    let refused = trial.world().write_log(LOG, config(Durability::Os));
    assert!(matches!(refused, Err(OpenError::Locked { .. })));
    drop(held);
    trial.world().write_log(LOG, config(Durability::Os)).unwrap();
}

fn a_log_that_must_be_there_is_not_made(trial: &impl Trial) {
    let world = trial.world();
    for _ in 0..2 {
        let refused = world.write_log(LOG, config(Durability::Os).existing());
        assert!(matches!(refused, Err(OpenError::Absent { .. })));
        assert!(matches!(world.read_log_from_start(LOG), Err(ReadError::NotYet { .. })));
    }
    drop(write(world, 0..1));
    world.write_log(LOG, config(Durability::Os).existing()).unwrap();
}

fn a_record_is_found_again_where_it_was(trial: &impl Trial) {
    let (_writer, offsets) = write(trial.world(), 0..5);
    let mut reader = trial.world().read_log(LOG, offsets[2]).unwrap();
    assert_eq!(reader.read_at(offsets[4]).unwrap().payload, payload(4));
    assert_eq!(read(&mut reader), numbers(2..5));
    reader.seek(offsets[1]).unwrap();
    assert_eq!(read(&mut reader), numbers(1..5));
}

fn segments_roll_and_are_released(trial: &impl Trial) {
    let count = (3 * SEGMENT / 72) as u32;
    let (mut writer, offsets) = write(trial.world(), 0..count);
    let mut reader = trial.world().read_log_from_start(LOG).unwrap();
    assert_eq!(read(&mut reader), numbers(0..count));
    let released = writer.release_before(*offsets.last().unwrap());
    assert!(released.0 >= 2 * SEGMENT && released <= *offsets.last().unwrap());
    assert!(matches!(reader.seek(offsets[0]), Err(ReadError::Released { .. })));
    let first = read(&mut trial.world().read_log_from_start(LOG).unwrap())[0];
    assert_eq!(offsets[first as usize].0, released.0 + 64);
}

fn a_torn_tail_is_cut(trial: &impl Trial) {
    let (mut writer, _) = write(trial.world(), 0..3);
    let torn = writer.append(&payload(3)).unwrap();
    drop(writer);
    trial.tear(torn.0, 64);
    let (writer, offsets) = write(trial.world(), 3..4);
    assert_eq!(offsets[0], torn, "the place is used again");
    assert_eq!(read(&mut trial.world().read_log_from_start(LOG).unwrap()), numbers(0..4));
    drop(writer);
}

fn whole_records_that_were_not_published_are_kept(trial: &impl Trial) {
    let (mut writer, _) = write(trial.world(), 0..3);
    writer.append(&payload(3)).unwrap();
    drop(writer);
    drop(trial.world().write_log(LOG, config(Durability::Os)).unwrap());
    assert_eq!(read(&mut trial.world().read_log_from_start(LOG).unwrap()), numbers(0..4));
}

fn damage_reported_and_skipped_refused_at_next_open(trial: &impl Trial) {
    let (writer, offsets) = write(trial.world(), 0..5);
    trial.flip(offsets[2].0 + 20);
    let mut reader = trial.world().read_log(LOG, offsets[2]).unwrap();
    assert!(matches!(reader.next(), Err(ReadError::Damaged { .. })));
    assert_eq!(reader.skip_damage(), offsets[3]);
    assert_eq!(read(&mut trial.world().read_log_from_start(LOG).unwrap()), [0, 1, 3, 4]);
    drop(writer);
    let refused = trial.world().write_log(LOG, config(Durability::Os));
    assert!(matches!(refused, Err(OpenError::Damaged { .. })));
}

fn a_damaged_log_is_replaced_and_its_readers_notice(trial: &impl Trial) {
    let (writer, offsets) = write(trial.world(), 0..5);
    trial.flip(offsets[2].0 + 20);
    drop(writer);
    let reader = trial.world().read_log_from_start(LOG).unwrap();
    let mut new = trial.world().replace_log(LOG, config(Durability::Os)).unwrap();
    assert_eq!(new.promised(), Offset(offsets[4].0 + 72));
    let mut whole = new.damaged().unwrap();
    while let Some(record) = whole.next() {
        new.append(record.payload).unwrap();
    }
    new.complete().unwrap();
    assert!(reader.is_replaced());
    let (_writer, _) = write(trial.world(), 5..6);
    assert_eq!(read(&mut trial.world().read_log_from_start(LOG).unwrap()), [0, 1, 3, 4, 5]);
}

fn a_log_that_vanished_is_another_when_it_is_back(trial: &impl Trial) {
    drop(write(trial.world(), 0..2));
    let mut reader = trial.world().read_log_from_start(LOG).unwrap();
    trial.vanish();
    assert!(!reader.is_replaced());
    let _writer = write(trial.world(), 7..8);
    assert!(reader.is_replaced());
    assert_eq!(read(&mut reader), numbers(0..2), "what was mapped stays");
    assert_eq!(read(&mut trial.world().read_log_from_start(LOG).unwrap()), [7]);
}

fn with_disk_only_a_sync_makes_durable(trial: &impl Trial) {
    let mut writer = trial.world().write_log(LOG, config(Durability::Disk)).unwrap();
    let first = writer.append(&payload(0)).unwrap();
    writer.publish();
    let mut reader = trial.world().read_log_from_start(LOG).unwrap();
    assert!(reader.durable() <= first && reader.written() > first);
    writer.sync().unwrap();
    assert_eq!((reader.durable(), writer.durable()), (reader.written(), writer.tail()));
    assert_eq!(read(&mut reader), [0]);
}

fn what_is_too_large_is_refused_and_changes_nothing(trial: &impl Trial) {
    let (mut writer, _) = write(trial.world(), 0..1);
    let before = writer.tail();
    let refused = writer.append_with(SEGMENT as usize / 2, |_| {});
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })));
    assert_eq!(writer.tail(), before);
}

/// The simulator's logs.
struct Memory {
    machine: Machine,
    world: Host,
}

impl Memory {
    fn new() -> Self {
        let machine = Machine::new(Seam::default(), false);
        let world = Host::new(&machine, LOG);
        Self { machine, world }
    }
}

impl Trial for Memory {
    type World = Host;

    fn world(&self) -> &Host {
        &self.world
    }

    fn flip(&self, at: u64) {
        self.machine.log(LOG).unwrap().lock().bytes[at as usize] ^= 1;
    }

    fn vanish(&self) {
        self.machine.lock().logs.remove(&LOG);
    }

    fn tear(&self, at: u64, len: usize) {
        self.machine.log(LOG).unwrap().lock().bytes[at as usize + 8 + len / 2..].fill(0);
    }
}

/// The logs that ship.
struct Mapped {
    dir: tempfile::TempDir,
    world: pares_node::HostWorld,
}

impl Mapped {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = pares_config::Layout::new(dir.path());
        std::fs::create_dir_all(layout.run()).unwrap();
        let world = pares_node::HostWorld::new(&layout).unwrap();
        Self { dir, world }
    }

    fn change(&self, at: u64, change: impl FnOnce(&mut [u8])) {
        let path = self.dir.path().join("venue-0").join(format!("{:020}.seg", at - at % SEGMENT));
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes[(at % SEGMENT) as usize..]);
        // In place: a reader may have it mapped.
        use std::os::unix::fs::FileExt;
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&bytes, 0).unwrap();
    }
}

impl Trial for Mapped {
    type World = pares_node::HostWorld;

    fn world(&self) -> &Self::World {
        &self.world
    }

    fn flip(&self, at: u64) {
        self.change(at, |bytes| bytes[0] ^= 1);
    }

    fn vanish(&self) {
        std::fs::remove_dir_all(self.dir.path().join("venue-0")).unwrap();
    }

    fn tear(&self, at: u64, len: usize) {
        self.change(at, |bytes| bytes[8 + len / 2..8 + len].fill(0));
    }
}

macro_rules! suite {
    ($($name:ident)*) => {
        mod memory {
            $(#[test]
            fn $name() {
                super::$name(&super::Memory::new());
            })*
        }

        mod mapped {
            $(#[test]
            fn $name() {
                super::$name(&super::Mapped::new());
            })*
        }
    };
}

suite! {
    only_what_is_published_is_read
    a_log_has_one_writer
    a_log_that_must_be_there_is_not_made
    a_record_is_found_again_where_it_was
    segments_roll_and_are_released
    a_torn_tail_is_cut
    a_mirror_has_what_its_source_has
    whole_records_that_were_not_published_are_kept
    damage_reported_and_skipped_refused_at_next_open
    a_damaged_log_is_replaced_and_its_readers_notice
    a_log_that_vanished_is_another_when_it_is_back
    with_disk_only_a_sync_makes_durable
    what_is_too_large_is_refused_and_changes_nothing
}
