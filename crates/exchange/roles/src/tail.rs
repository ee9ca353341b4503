//! A log that is tailed from before it exists, and continues in another one that takes its place.
//!
//! Nodes start in any order and any of them may be dead, so a log that is not there yet is no error: it
//! is an empty one. A node whose disk was replaced begins a new log where the old one lay, and a reader that still has the old
//! one mapped would wait there for ever. Looking for either costs system calls, so it is done only now and then, and only by a
//! reader that has nothing to read.
//!
//! A recorder that a start left out has no log either, until it has rebuilt its log: what the start gave up is in it.

use std::fmt::Display;

use pares_config::NodeId;
use pares_log::{LogReader, Offset, ReadError, Record};

use crate::world::World;
use crate::{left_out, repair_asked};

/// Polls with nothing to read between two looks for a log that is not there, or for another in its place, unless
/// [`Tail::look`] asks for one.
const LOOK_EVERY: u32 = 64;

/// A reader of a log that may not exist yet.
pub struct Tail<W: World> {
    world: W,
    log: NodeId,
    from: Offset,
    reader: Option<W::Reader>,
    /// What the reader had published, and durable, when its marks were last looked at: up to there nothing else needs a look.
    written: Offset,
    durable: Offset,
    polls: u32,
    /// Whether to look at the next poll with nothing to read.
    due: bool,
    skipped: bool,
    /// Whether the last record could not be read: a part of another log, perhaps.
    troubled: bool,
    unreadable: bool,
    /// Whether the last record was of no use yet.
    back: bool,
    replaced: bool,
    /// Stretches that could not be read and were skipped.
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
            written: Offset::START,
            durable: Offset::START,
            polls: 0,
            due: false,
            skipped: false,
            troubled: false,
            unreadable: false,
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
        if !self.is_amid(self.written) {
            if !self.try_ready()? {
                return Ok(None);
            }
            self.written = self.reader.as_ref().expect("it is ready").written();
        }
        self.read_below(Offset(u64::MAX))
    }

    /// Whether it reads on below a place that it has seen reached.
    #[inline]
    fn is_amid(&self, end: Offset) -> bool {
        !self.troubled && !self.back && self.reader.as_ref().is_some_and(|reader| reader.offset() < end)
    }

    /// As [`Self::is_ready`]. A log that is not open is tried only now and then, so that nothing to read says nothing of it.
    fn try_ready(&mut self) -> Result<bool, ReadError> {
        let ready = self.is_ready();
        match ready {
            Ok(true) => self.unreadable = false,
            Ok(false) => {}
            Err(_) => self.unreadable = true,
        }
        ready
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
            assert!(reader.offset() >= first, "a reader skips what is released");
            self.skipped = true;
        }
        Ok(true)
    }

    fn read_below(&mut self, end: Offset) -> Result<Option<Record<'_>>, ReadError> {
        let next = self.reader.as_mut().expect("it is ready").next_below(end);
        (self.troubled, self.unreadable) = (next.is_err(), next.is_err());
        unless_gone(next).map(Option::flatten)
    }

    /// Steps over what [`Tail::next`] could not read, tells the operator, and asks the log's node to repair it. For readers of
    /// what others have too, or what can be asked for again: one node's damaged log must not stop the others.
    ///
    /// # Errors
    /// The error itself, unless it is damage that was skipped: what lies behind may be out of sight just now, and a caller that reads on at
    /// once would meet the damage again, for ever.
    pub fn pass_over(&mut self, error: ReadError) -> Result<(), ReadError> {
        if !error.is_damage() {
            return Err(error);
        }
        self.look_for_another();
        let Some(reader) = self.reader.as_mut() else { return Ok(()) };
        let from = reader.offset();
        let to = reader.skip_damage();
        assert!(to >= from, "a reader skips damage forwards only");
        if to == from {
            return Err(error);
        }
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

    /// Whether it could not be read when that was last tried: damage, no descriptors, no memory.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Stretches that could not be read and were skipped.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next record that is durable as the writer's setting promises.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn next_durable(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        if !self.is_amid(self.durable) {
            if !self.try_ready()? {
                return Ok(None);
            }
            let reader = self.reader.as_ref().expect("it is ready");
            self.durable = reader.durable();
            if reader.offset() >= self.durable {
                return Ok(None);
            }
        }
        // The end of a segment may be durable where the record behind it is not.
        let end = self.durable;
        let next = self.read_below(end)?;
        assert!(next.is_none_or(|record| record.offset < end), "what is read as durable lies below its end");
        Ok(next)
    }

    /// Passes over the next record if nothing of it is needed, as [`LogReader::pass_if`]; a durable one, if those are read.
    #[inline]
    pub(crate) fn pass_if(&mut self, is_known: impl FnOnce(&[u8]) -> bool) -> bool {
        // A reader goes by one of the two.
        let end = self.written.max(self.durable);
        self.is_amid(end) && self.reader.as_mut().is_some_and(|reader| reader.pass_if(end, is_known))
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
    pub fn look(&mut self) {
        self.due = true;
    }

    /// The next look opens the log at its beginning: it is another one.
    fn begin_anew(&mut self) {
        (self.reader, self.from, self.replaced) = (None, Offset::START, true);
        (self.written, self.durable) = (Offset::START, Offset::START);
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
        assert!(offset <= self.offset(), "a reader steps back, never ahead");
        (self.from, self.back) = (offset, true);
        self.reader.as_mut().map_or(Ok(()), |reader| reader.seek(offset))
    }

    /// Whether records were skipped, since this was last asked, because they were released.
    pub fn take_skipped(&mut self) -> bool {
        std::mem::take(&mut self.skipped)
    }

    /// Where the next record is expected.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.reader.as_ref().map_or(self.from, LogReader::offset)
    }

    fn open(&mut self) -> Result<bool, ReadError> {
        assert!(self.reader.is_none(), "a log that is open is not opened once more");
        self.polls = self.polls.wrapping_add(1);
        if !std::mem::take(&mut self.due) && self.polls % LOOK_EVERY != 1 {
            return Ok(false);
        }
        // Asked before: the log may be rebuilt, and the note removed, while it is being opened.
        let is_left_out = matches!(self.log, NodeId::Recorder(id) if left_out::is_noted(&self.world, id));
        let opened = match self.world.read_log(self.log, self.from) {
            Err(ReadError::Released { .. }) => self.world.read_log_from_start(self.log),
            // Rebuilt since the place was written down.
            Err(ReadError::BeyondEnd { .. }) => {
                self.begin_anew();
                return Ok(false);
            }
            opened => opened,
        };
        self.reader = match unless_gone(opened) {
            Ok(reader) => {
                self.unreadable = false;
                reader.filter(|_| !is_left_out)
            }
            // Its marks are damaged. Told once; until they are repaired there is no log.
            Err(error) if error.is_damage() => {
                if !std::mem::replace(&mut self.told, true) {
                    self.tell(&error);
                }
                self.unreadable = true;
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
mod tests;
