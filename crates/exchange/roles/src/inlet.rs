//! Another node's log as a node reads it that can continue without: nothing that is wrong there stops a node here.
//!
//! A flipped bit, a record of a newer build or a file that cannot be mapped would otherwise end every reader, and end it again
//! as it starts again. So it is skipped, counted, told to the operator, and the log's node is asked to repair it. A reader of
//! what others have too waits for those; what only this log had is asked for again.

use std::fmt::Display;

use pares_config::NodeId;
use pares_log::{Offset, ReadError, Record};

use crate::tail::Tail;
use crate::world::World;

/// A log that a node reads for what it can have of it.
pub struct LogCursor<W: World> {
    world: W,
    log: NodeId,
    /// Where in it the node is.
    pub tail: Tail<W>,
    /// Records that this build does not understand, and times the log could not be read.
    strange: u64,
    /// Whether anything was skipped since the log's beginning.
    broken: bool,
    /// Whether the operator knows that it cannot be read just now.
    told: bool,
}

impl<W: World> LogCursor<W> {
    /// That node's log, from there on.
    #[must_use]
    pub fn new(world: &W, log: NodeId, from: Offset) -> Self {
        let tail = Tail::new(world, log, from);
        Self { world: world.clone(), log, tail, strange: 0, broken: from > Offset::START, told: false }
    }

    /// As [`Tail::next`].
    ///
    /// # Errors
    /// As [`Tail::next`].
    // Not an Iterator: the record borrows the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.told &= self.tail.is_unreadable();
        if self.tail.take_replaced() {
            self.broken = false;
        }
        self.tail.next()
    }

    /// The record just read is none that this build understands, or has no business there.
    pub fn on_strange(&mut self, what: &dyn Display) {
        assert!(self.tail.offset() > Offset::START, "a record is skipped only after it was read");
        self.strange += 1;
        self.broken = true;
        // A log may be full of them.
        if self.strange.is_power_of_two() {
            let (log, strange) = (self.log, self.strange);
            self.world.complain(&format_args!("skipping record {strange} of {log}: {what}"));
        }
    }

    /// The next record cannot be read. Says whether it was skipped, so that there may be more. Anything but damage
    /// passes by itself: the log is being replaced, or descriptors are out.
    pub fn on_unreadable(&mut self, error: ReadError) -> bool {
        let Err(error) = self.tail.pass_over(error) else {
            self.broken = true;
            return true;
        };
        if !std::mem::replace(&mut self.told, true) {
            self.strange += 1;
            self.world.complain(&format_args!("the log of {} cannot be read for now: {error}", self.log));
        }
        false
    }

    /// Whether all was read that the log has from its beginning.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.broken
    }

    /// How often something in it was skipped.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.tail.damaged() + self.strange
    }
}
