//! A log that is tailed from before it exists, and goes on in another one that takes its place.
//!
//! Nodes start in any order and any of them may be dead, so a log that is not there yet is no error: it
//! is an empty one. A node whose disk was replaced begins a new log where the old one lay, and a reader that still has the old
//! one mapped would wait there for ever. Looking for either costs system calls, so it is done only now and then, and only by a
//! reader that has nothing to read.

use std::fmt::Display;

use pares_log::{LogReader, Offset, ReadError, Record};

use crate::NodeId;
use crate::repair_asked;
use crate::world::World;

/// Polls with nothing to read between two looks for a log that is not there, or for another in its place, unless
/// [`Tail::look`] asks for one.
const LOOK_EVERY: u32 = 64;

/// A reader of a log that may not exist yet.
pub struct Tail<W: World> {
    world: W,
    log: NodeId,
    from: Offset,
    reader: Option<W::Reader>,
    polls: u32,
    /// Whether to look at the next poll with nothing to read.
    due: bool,
    skipped: bool,
    /// Whether the last record could not be read: a part of another log, perhaps.
    troubled: bool,
    /// Whether the last record was of no use yet.
    back: bool,
    replaced: bool,
    /// Stretches that could not be read and were passed over.
    damaged: u64,
    /// Whether the operator knows that it cannot be opened.
    told: bool,
}

impl<W: World> Tail<W> {
    /// Will read that node's log from `from`.
    pub fn new(world: &W, log: NodeId, from: Offset) -> Self {
        Self {
            world: world.clone(),
            log,
            from,
            reader: None,
            polls: 0,
            due: false,
            skipped: false,
            troubled: false,
            back: false,
            replaced: false,
            damaged: 0,
            told: false,
        }
    }

    /// The next published record. A log whose beginning is released is read from what is left.
    ///
    /// # Errors
    /// As [`LogReader::next`]; the reader stays where it is.
    // Not an Iterator: the record borrows the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if self.is_ready()? { self.read() } else { Ok(None) }
    }

    /// Whether there is a log. Passes over what is released of it. If it is another one than before, not at this look: that it is
    /// can be [asked](Tail::take_replaced) before anything in it is seen.
    fn is_ready(&mut self) -> Result<bool, ReadError> {
        if self.look_for_another() || self.reader.is_none() && !self.open()? {
            return Ok(false);
        }
        let reader = self.reader.as_mut().expect("just opened");
        let first = reader.released();
        if reader.offset() < first {
            match reader.seek(first) {
                // More was released meanwhile: the next look finds the new beginning.
                Err(ReadError::Released { .. }) => return Ok(false),
                sought => sought?,
            }
            self.skipped = true;
        }
        Ok(true)
    }

    fn read(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        let next = self.reader.as_mut().expect("it is ready").next();
        self.troubled = next.is_err();
        unless_gone(next).map(Option::flatten)
    }

    /// Steps over what [`Tail::next`] could not read, tells the operator, and asks the log's node to repair it. For readers of
    /// what others have too, or what can be asked for again: one node's damaged log must not stop the others.
    ///
    /// # Errors
    /// The error itself, unless it is damage.
    pub fn pass_over(&mut self, error: ReadError) -> Result<(), ReadError> {
        if !error.is_damage() {
            return Err(error);
        }
        self.look_for_another();
        let Some(reader) = self.reader.as_mut() else { return Ok(()) };
        let to = reader.skip_damage();
        self.troubled = false;
        self.tell(&format_args!("{error}; read on at {to}"));
        Ok(())
    }

    fn tell(&mut self, what: &dyn Display) {
        self.damaged += 1;
        let log = self.log;
        self.world.complain(&format_args!("the log of {log} is damaged: {what}"));
        repair_asked::ask(&self.world, log);
    }

    /// Stretches that could not be read and were passed over.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next record that is durable as the writer's setting promises.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn next_durable(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        let is_ready = self.is_ready()?;
        match &self.reader {
            Some(reader) if is_ready && reader.offset() < reader.durable() => self.read(),
            _ => Ok(None),
        }
    }

    /// With nothing left to read or no use for it, now and then, and in trouble at once: another log in the place of this one
    /// is read from its beginning.
    fn look_for_another(&mut self) -> bool {
        let Some(reader) = &self.reader else { return false };
        let back = std::mem::take(&mut self.back);
        if !self.troubled && !back && reader.offset() < reader.durable() {
            return false;
        }
        self.polls = self.polls.wrapping_add(1);
        let due = std::mem::take(&mut self.due) || self.troubled || self.polls.is_multiple_of(LOOK_EVERY);
        let found = due && reader.is_replaced();
        if found {
            self.begin_anew();
        }
        found
    }

    /// Looks, at the next poll with nothing to read, for a log that was not there, or another in its place. A log's writer rings when
    /// it has published: a reader that was woken looks before it sleeps again.
    pub(crate) fn look(&mut self) {
        self.due = true;
    }

    /// The next look opens the log at its beginning: it is another one.
    fn begin_anew(&mut self) {
        (self.reader, self.from, self.replaced) = (None, Offset::START, true);
        (self.troubled, self.polls) = (false, 0);
    }

    /// Whether another log took the place of the one read, since this was last asked. What is read from now on may have been
    /// read before.
    pub fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.replaced)
    }

    /// Steps back to `offset`, which the reader has passed: the record there is read again. Another log that takes the place
    /// of this one meanwhile is found: it may have what the reader waits for.
    ///
    /// # Errors
    /// If it is released meanwhile.
    pub fn seek(&mut self, offset: Offset) -> Result<(), ReadError> {
        (self.from, self.back) = (offset, true);
        self.reader.as_mut().map_or(Ok(()), |reader| reader.seek(offset))
    }

    /// Whether records were passed over, since this was last asked, because they were released.
    pub fn take_skipped(&mut self) -> bool {
        std::mem::take(&mut self.skipped)
    }

    /// Where the next record is expected.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.reader.as_ref().map_or(self.from, LogReader::offset)
    }

    /// Bytes published and not read.
    #[must_use]
    pub fn behind_bytes(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.written().since(reader.offset()))
    }

    fn open(&mut self) -> Result<bool, ReadError> {
        self.polls = self.polls.wrapping_add(1);
        if !std::mem::take(&mut self.due) && self.polls % LOOK_EVERY != 1 {
            return Ok(false);
        }
        let opened = match self.world.read_log(self.log, self.from) {
            Err(ReadError::Released { .. }) => self.world.read_log_from_start(self.log),
            // Made anew since the place was written down.
            Err(ReadError::BeyondEnd { .. }) => {
                self.begin_anew();
                return Ok(false);
            }
            opened => opened,
        };
        self.reader = match unless_gone(opened) {
            Ok(reader) => reader,
            // Its marks are damaged. Told once; until they are repaired there is no log.
            Err(error) if error.is_damage() => {
                if !std::mem::replace(&mut self.told, true) {
                    self.tell(&error);
                }
                None
            }
            Err(error) => return Err(error),
        };
        self.told &= self.reader.is_none();
        Ok(self.reader.is_some())
    }
}

/// What was looked for. `None` if it was released, or taken away, since its place was looked up: the next look finds what is
/// there then.
fn unless_gone<T>(found: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ReadError::NotYet { .. } | ReadError::Released { .. } | ReadError::BeyondEnd { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pares_log::{Config, Durability, Writer};
    use pares_types::VenueId;

    use super::*;
    use crate::testing::TestWorld;

    const LOG: NodeId = NodeId::Venue(VenueId(0));

    fn small() -> Config {
        Config::default().segment_bytes(4096)
    }

    fn publish(writer: &mut Writer, payload: &[u8]) {
        writer.append(payload).unwrap();
        writer.publish();
    }

    fn drain(tail: &mut Tail<TestWorld>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        // Long enough to look for a log, or for another one.
        for _ in 0..3 * LOOK_EVERY {
            all.extend(tail.next_durable().unwrap().map(|record| record.payload.to_vec()));
        }
        all
    }

    fn write(world: &TestWorld, records: &[&[u8]]) {
        let mut writer = world.write_log(LOG, small()).unwrap();
        records.iter().for_each(|record| publish(&mut writer, record));
    }

    fn take_away(world: &TestWorld) {
        std::fs::remove_dir_all(world.real(Path::new(&LOG.to_string()))).unwrap();
    }

    #[test]
    fn another_log_in_the_place_of_one_that_was_taken_away_is_read_from_its_beginning() {
        let world = TestWorld::new();
        let mut tail = Tail::new(&world, LOG, Offset::START);
        assert!(drain(&mut tail).is_empty(), "there is none yet");
        write(&world, &[b"one", b"two"]);
        assert_eq!(drain(&mut tail), [b"one", b"two"]);
        take_away(&world);
        assert!(drain(&mut tail).is_empty() && !tail.take_replaced());
        write(&world, &[b"one again"]);
        assert_eq!(drain(&mut tail), [b"one again"]);
        assert!(tail.take_replaced() && !tail.take_replaced());
    }

    #[test]
    fn a_log_that_does_not_reach_as_far_as_it_once_did_is_another_one() {
        let world = TestWorld::new();
        write(&world, &[b"new"]);
        let mut tail = Tail::new(&world, LOG, Offset(1 << 12));
        assert_eq!(drain(&mut tail), [b"new"]);
        assert!(tail.take_replaced());
    }

    #[test]
    fn another_log_is_noticed_also_by_a_reader_that_had_something_left_to_read() {
        let world = TestWorld::new();
        write(&world, &[b"one", b"two"]);
        let mut tail = Tail::new(&world, LOG, Offset::START);
        tail.open().unwrap();
        take_away(&world);
        // What was not mapped yet is gone.
        assert!(tail.next().unwrap_err().is_damage());
        write(&world, &[b"new"]);
        assert_eq!(drain(&mut tail), [b"new"]);
        assert!(tail.take_replaced());
    }

    #[test]
    fn of_a_log_just_opened_nothing_is_read_that_is_not_durable() {
        let world = TestWorld::new();
        let mut writer = world.write_log(LOG, small().durability(Durability::Disk)).unwrap();
        publish(&mut writer, b"first");
        let mut tail = Tail::new(&world, LOG, Offset::START);
        assert!(drain(&mut tail).is_empty());
        writer.sync().unwrap();
        assert_eq!(drain(&mut tail), [b"first"]);
    }

    #[test]
    fn of_a_log_in_the_place_of_another_nothing_is_read_that_is_not_durable() {
        let world = TestWorld::new();
        let disk = small().durability(Durability::Disk);
        let mut writer = world.write_log(LOG, disk.clone()).unwrap();
        publish(&mut writer, b"old");
        writer.sync().unwrap();
        let mut tail = Tail::new(&world, LOG, Offset::START);
        assert_eq!(drain(&mut tail), [b"old"]);
        drop(writer);
        take_away(&world);
        let mut writer = world.write_log(LOG, disk).unwrap();
        publish(&mut writer, b"new");
        assert!(drain(&mut tail).is_empty());
        writer.sync().unwrap();
        assert_eq!(drain(&mut tail), [b"new"]);
    }

    #[test]
    fn that_a_log_is_another_is_told_before_anything_in_it() {
        let world = TestWorld::new();
        let mut writer = world.write_log(LOG, small()).unwrap();
        (0..3).for_each(|_| publish(&mut writer, b"old"));
        let mut tail = Tail::new(&world, LOG, Offset::START);
        drain(&mut tail);
        let mut late = Tail::new(&world, LOG, tail.offset());
        drop(writer);
        take_away(&world);
        publish(&mut world.write_log(LOG, small()).unwrap(), b"new");
        for tail in [&mut tail, &mut late] {
            let mut told = false;
            let first = (0..3 * LOOK_EVERY).find_map(|_| {
                told |= tail.take_replaced();
                tail.next_durable().unwrap().map(|record| record.payload.to_vec())
            });
            assert_eq!((told, first), (true, Some(b"new".to_vec())));
        }
    }

    #[test]
    fn a_log_that_is_released_or_taken_away_as_it_is_looked_at_ends_no_reader() {
        let released = ReadError::Released { offset: Offset(64), first: Offset(4096) };
        assert_eq!(unless_gone::<()>(Err(released)).unwrap(), None);
        assert_eq!(unless_gone::<()>(Err(ReadError::NotYet { dir: "log".into() })).unwrap(), None);
        assert_eq!(unless_gone(Ok(7)).unwrap(), Some(7));
        let damaged = ReadError::Damaged { offset: Offset(64), what: pares_log::record::Invalid::Kind };
        assert!(unless_gone::<()>(Err(damaged)).is_err());
    }

    #[test]
    fn a_log_whose_marks_are_damaged_is_as_good_as_none_and_its_node_is_asked_to_repair_it() {
        let world = TestWorld::new();
        drop(world.write_log(LOG, small()).unwrap());
        let marks = world.real(Path::new(&LOG.to_string())).join("marks");
        let mut bytes = std::fs::read(&marks).unwrap();
        bytes[0] ^= 1;
        std::fs::write(&marks, &bytes).unwrap();
        let mut tail = Tail::new(&world, LOG, Offset::START);
        assert!(drain(&mut tail).is_empty());
        assert_eq!((world.complaints().lines().count(), repair_asked::is_asked(&world, LOG)), (1, true));
    }

    #[test]
    fn a_segment_that_is_missing_is_passed_over() {
        let world = TestWorld::new();
        let mut writer = world.write_log(LOG, small()).unwrap();
        (0..20u8).for_each(|n| publish(&mut writer, &[n; 400]));
        std::fs::remove_file(world.real(Path::new(&format!("{LOG}/00000000000000004096.seg")))).unwrap();
        let mut tail = Tail::new(&world, LOG, Offset::START);
        let mut read = Vec::new();
        for _ in 0..100 {
            match tail.next() {
                Ok(record) => read.extend(record.map(|record| record.payload[0])),
                Err(error) => tail.pass_over(error).unwrap(),
            }
        }
        assert_eq!(read, [&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], &[18, 19]].concat());
        assert_eq!((tail.damaged(), repair_asked::is_asked(&world, LOG)), (1, true));
    }
}
